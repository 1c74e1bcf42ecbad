// Uses an API server as Go controllers do: typed clients with their own choice of format, a shared informer,
// recorders, leader election.
//
// The only argument is a kubeconfig. One line per scenario that passed goes to standard output; the first that fails
// ends the program with its error.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

const namespace = "default"

var inProtobuf atomic.Int64

// counting counts the requests whose bodies are protobuf: the default must not change unseen.
type counting struct{ next http.RoundTripper }

func (c counting) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Header.Get("Content-Type") == "application/vnd.kubernetes.protobuf" && request.Body != nil {
		inProtobuf.Add(1)
	}
	return c.next.RoundTrip(request)
}

func expect(holds bool, format string, arguments ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, arguments...)
}

func newConfigMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"of": "interop"}},
		Data:       map[string]string{"a": "b", "empty": ""},
		BinaryData: map[string][]byte{"bytes": {0, 1, 255}},
	}
}

func configMaps(ctx context.Context, client kubernetes.Interface) error {
	all := client.CoreV1().ConfigMaps(namespace)
	made, err := all.Create(ctx, newConfigMap("one"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := expect(reflect.DeepEqual(made.BinaryData, newConfigMap("").BinaryData), "bytes: %v", made.BinaryData); err != nil {
		return err
	}
	_, err = all.Create(ctx, newConfigMap("one"), metav1.CreateOptions{})
	if err := expect(apierrors.IsAlreadyExists(err), "created twice: %v", err); err != nil {
		return err
	}
	read, err := all.Get(ctx, "one", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := expect(equality.Semantic.DeepEqual(made, read), "made %v, read %v", made, read); err != nil {
		return err
	}
	read.Data["a"] = "c"
	changed, err := all.Update(ctx, read, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	_, err = all.Update(ctx, read, metav1.UpdateOptions{})
	if err := expect(apierrors.IsConflict(err), "updated an old version: %v", err); err != nil {
		return err
	}
	list, err := all.List(ctx, metav1.ListOptions{LabelSelector: "of=interop"})
	if err != nil {
		return err
	}
	if err := expect(len(list.Items) == 1 && list.Items[0].Data["a"] == "c", "listed %v", list.Items); err != nil {
		return err
	}
	wrong := types.UID("another")
	err = all.Delete(ctx, "one", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
	if err := expect(apierrors.IsConflict(err), "deleted another one: %v", err); err != nil {
		return err
	}
	right := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &changed.UID}}
	if err := all.Delete(ctx, "one", right); err != nil {
		return err
	}
	_, err = all.Get(ctx, "one", metav1.GetOptions{})
	return expect(apierrors.IsNotFound(err), "read what was deleted: %v", err)
}

func watches(ctx context.Context, client kubernetes.Interface) error {
	all := client.CoreV1().ConfigMaps(namespace)
	list, err := all.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	stream, err := all.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	defer stream.Stop()
	made, err := all.Create(ctx, newConfigMap("watched"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made.Immutable = new(bool)
	if _, err := all.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err := all.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "of=interop"}); err != nil {
		return err
	}
	for _, wanted := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		event, open := <-stream.ResultChan()
		object, isConfigMap := event.Object.(*corev1.ConfigMap)
		if err := expect(open && isConfigMap && event.Type == wanted && object.Name == "watched", "%v, not %s", event, wanted); err != nil {
			return err
		}
	}
	return nil
}

func newDeployment() *appsv1.Deployment {
	replicas, labels := int32(2), map[string]string{"app": "web"}
	port := intstr.FromString("http")
	container := corev1.Container{
		Name:  "web",
		Image: "web:1",
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
		Env: []corev1.EnvVar{{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "secret"}, Key: "token",
		}}}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
		},
		// Numbers as a server would set them: the comparison takes 0 for a number and not for one that is missing.
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:   corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: port}},
			TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3,
		},
	}
	volume := corev1.Volume{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{container}, Volumes: []corev1.Volume{volume}},
			},
		},
	}
}

func deployments(ctx context.Context, client kubernetes.Interface) error {
	all := client.AppsV1().Deployments(namespace)
	wanted := newDeployment()
	made, err := all.Create(ctx, wanted, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	// A real server adds defaults; what was sent must still be there.
	if err := expect(equality.Semantic.DeepDerivative(wanted.Spec, made.Spec), "sent %v, made %v", wanted.Spec, made.Spec); err != nil {
		return err
	}
	made.Status.Replicas = 1
	made.Status.Conditions = []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, LastUpdateTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}
	shown, err := all.UpdateStatus(ctx, made, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	if err := expect(equality.Semantic.DeepDerivative(made.Status.Conditions[0].Type, shown.Status.Conditions[0].Type), "status %v", shown.Status); err != nil {
		return err
	}
	scale, err := all.GetScale(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	scale.Spec = autoscalingv1.ScaleSpec{Replicas: 5}
	if scale, err = all.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err := expect(scale.Spec.Replicas == 5, "scaled to %v", scale.Spec); err != nil {
		return err
	}
	patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`)
	patched, err := all.Patch(ctx, "web", types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	container := patched.Spec.Template.Spec.Containers[0]
	if err := expect(*patched.Spec.Replicas == 5 && container.Image == "web:2" && len(container.Env) == 1, "patched %v", patched.Spec); err != nil {
		return err
	}
	propagation := metav1.DeletePropagationBackground
	return all.Delete(ctx, "web", metav1.DeleteOptions{PropagationPolicy: &propagation})
}

func informer(ctx context.Context, client kubernetes.Interface) error {
	all := client.CoreV1().ConfigMaps(namespace)
	if _, err := all.Create(ctx, newConfigMap("before"), metav1.CreateOptions{}); err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	shared := factory.Core().V1().ConfigMaps()
	seen := make(chan string, 100)
	name := func(object any) string { key, _ := cache.DeletionHandlingMetaNamespaceKeyFunc(object); return key }
	if _, err := shared.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { seen <- "add " + name(object) },
		UpdateFunc: func(_, object any) { seen <- "update " + name(object) },
		DeleteFunc: func(object any) { seen <- "delete " + name(object) },
	}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer cancel()
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), shared.Informer().HasSynced) {
		return fmt.Errorf("the cache did not sync")
	}
	made, err := all.Create(ctx, newConfigMap("later"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made.Data = nil
	if _, err := all.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err := all.Delete(ctx, "later", metav1.DeleteOptions{}); err != nil {
		return err
	}
	for _, wanted := range []string{"add default/before", "add default/later", "update default/later", "delete default/later"} {
		select {
		case got := <-seen:
			if err := expect(got == wanted, "saw %q, not %q", got, wanted); err != nil {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("never saw %q", wanted)
		}
	}
	_, err = shared.Lister().ConfigMaps(namespace).Get("before")
	return err
}

func about(ctx context.Context, client kubernetes.Interface) (*corev1.ObjectReference, error) {
	object, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, "before", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: object.Name, UID: object.UID}, nil
}

func coreRecorder(ctx context.Context, client kubernetes.Interface) error {
	object, err := about(ctx, client)
	if err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "interop"})
	recorder.Event(object, corev1.EventTypeNormal, "Twice", "the same")
	recorder.Event(object, corev1.EventTypeNormal, "Twice", "the same")
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 5*time.Second, true, func(ctx context.Context) (bool, error) {
		found, err := client.CoreV1().Events(namespace).Search(scheme.Scheme, object)
		if err != nil {
			return false, err
		}
		return len(found.Items) == 1 && found.Items[0].Count == 2 && found.Items[0].Source.Component == "interop", nil
	})
}

func newRecorder(ctx context.Context, client kubernetes.Interface) error {
	object, err := about(ctx, client)
	if err != nil {
		return err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	recorder := broadcaster.NewRecorder(scheme.Scheme, "interop.example.com/controller")
	recorder.Eventf(object, nil, corev1.EventTypeWarning, "New", "Testing", "of %s", "the new kind")
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 5*time.Second, true, func(ctx context.Context) (bool, error) {
		found, err := client.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=New"})
		if err != nil {
			return false, err
		}
		return len(found.Items) == 1 && !found.Items[0].EventTime.IsZero() && found.Items[0].Note == "of the new kind", nil
	})
}

func leaderElection(ctx context.Context, client kubernetes.Interface) error {
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: "interop"},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: "go"},
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var led error
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   3 * time.Second,
		RenewDeadline:   2 * time.Second,
		RetryPeriod:     50 * time.Millisecond,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				defer cancel()
				led = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 5*time.Second, true, func(ctx context.Context) (bool, error) {
					lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, "interop", metav1.GetOptions{})
					if err != nil {
						return false, err
					}
					renewed := lease.Spec.RenewTime.After(lease.Spec.AcquireTime.Time)
					return renewed && *lease.Spec.HolderIdentity == "go" && *lease.Spec.LeaseDurationSeconds == 3, nil
				})
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	if led != nil {
		return led
	}
	lease, err := client.CoordinationV1().Leases(namespace).Get(context.WithoutCancel(ctx), "interop", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return expect(*lease.Spec.HolderIdentity == "", "not released: %v", lease.Spec)
}

func run(kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next} })
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	for _, scenario := range []struct {
		name     string
		run      func(context.Context, kubernetes.Interface) error
		protobuf bool // the core recorder's own calls leave the format to the configuration: JSON
	}{
		{"config maps", configMaps, true},
		{"watches", watches, true},
		{"deployments", deployments, true},
		{"informer", informer, true},
		{"dynamic informer", dynamicInformer(untyped), false},
		{"core recorder", coreRecorder, false},
		{"events.k8s.io recorder", newRecorder, true},
		{"leader election", leaderElection, true},
	} {
		before := inProtobuf.Load()
		if err := scenario.run(ctx, client); err != nil {
			return fmt.Errorf("%s: %w", scenario.name, err)
		}
		if err := expect((inProtobuf.Load() > before) == scenario.protobuf, "%s: bodies in protobuf: %d", scenario.name, inProtobuf.Load()-before); err != nil {
			return err
		}
		fmt.Println(scenario.name)
	}
	return nil
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
