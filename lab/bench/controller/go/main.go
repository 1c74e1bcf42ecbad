// The operator on controller-runtime, as its book shows it: a manager with its cache, Owns, CreateOrUpdate, and a patch
// of the status that is sent if something changes.
//
// The caches keep objects of both kinds, decoded into types. Leader election and metrics are off, as they are for all.
package main

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

type Greeting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              GreetingSpec   `json:"spec,omitempty"`
	Status            GreetingStatus `json:"status,omitempty"`
}

type GreetingSpec struct {
	Message  string `json:"message"`
	Language string `json:"language,omitempty"`
}

type GreetingStatus struct {
	Message            string `json:"message,omitempty"`
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
}

type GreetingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Greeting `json:"items"`
}

func (in *Greeting) DeepCopyObject() runtime.Object {
	out := *in
	out.ObjectMeta = *in.ObjectMeta.DeepCopy()
	return &out
}

func (in *GreetingList) DeepCopyObject() runtime.Object {
	out := *in
	out.ListMeta = *in.ListMeta.DeepCopy()
	out.Items = make([]Greeting, len(in.Items))
	for i := range in.Items {
		out.Items[i] = *in.Items[i].DeepCopyObject().(*Greeting)
	}
	return &out
}

type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	greeting := &Greeting{}
	if err := r.Get(ctx, request.NamespacedName, greeting); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: greeting.Namespace, Name: greeting.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		child.Data = map[string]string{"message": greeting.Spec.Message}
		return controllerutil.SetControllerReference(greeting, child, r.Scheme())
	})
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: 1}, nil // the cache is behind: no error, as the book advises
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	before := greeting.DeepCopyObject().(*Greeting)
	greeting.Status = GreetingStatus{Message: greeting.Spec.Message, ObservedGeneration: greeting.Generation}
	if before.Status == greeting.Status {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Patch(ctx, greeting, client.MergeFrom(before)))
}

func run() error {
	ctrl.SetLogger(klog.Background().V(10))
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	group := schema.GroupVersion{Group: "bench.deltaloop.dev", Version: "v1"}
	scheme.AddKnownTypes(group, &Greeting{}, &GreetingList{})
	metav1.AddToGroupVersion(scheme, group)
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS = -1 // no limit of the client's own, as for all
	if os.Getenv("BENCH_SERVER") == "replayed" {
		config.ContentType = runtime.ContentTypeJSON // it knows no protobuf, which is what config maps come in otherwise
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
		Client: client.Options{
			Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(os.Getenv("BENCH_FORM") == "consistent")},
		},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&Greeting{}).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 16}).
		Complete(&reconciler{manager.GetClient()})
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func main() {
	if err := run(); err != nil {
		klog.ErrorS(err, "the operator has failed")
		os.Exit(1)
	}
}
