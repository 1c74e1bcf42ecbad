package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

var (
	crds    = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	gadgets = schema.GroupVersionResource{Group: "interop.example.com", Version: "v1", Resource: "gadgets"}
)

func gadgetCRD() *unstructured.Unstructured {
	properties := map[string]any{
		"spec": map[string]any{"type": "object", "properties": map[string]any{
			"size": map[string]any{"type": "integer", "default": int64(3)},
		}},
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": "gadgets.interop.example.com"},
		"spec": map[string]any{
			"group": gadgets.Group,
			"scope": "Namespaced",
			"names": map[string]any{"kind": "Gadget", "plural": "gadgets"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": properties}},
			}},
		},
	}}
}

func gadget(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "interop.example.com/v1",
		"kind":       "Gadget",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"unknown": true},
	}}
}

// dynamicInformer watches a resource that no Go type knows, beside one that some do.
func dynamicInformer(client dynamic.Interface) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, _ kubernetes.Interface) error {
		if _, err := client.Resource(crds).Create(ctx, gadgetCRD(), metav1.CreateOptions{}); err != nil {
			return err
		}
		ours := client.Resource(gadgets).Namespace(namespace)
		made, err := ours.Create(ctx, gadget("before"), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		spec, _, _ := unstructured.NestedMap(made.Object, "spec")
		if err := expect(len(spec) == 1 && spec["size"] == int64(3), "not pruned and defaulted: %v", spec); err != nil {
			return err
		}
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
		informer := factory.ForResource(gadgets)
		maps := factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
		seen := make(chan string, 100)
		told := func(what string, object any) {
			key, _ := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
			size := int64(0)
			if found, ok := object.(*unstructured.Unstructured); ok {
				size, _, _ = unstructured.NestedInt64(found.Object, "spec", "size")
			}
			seen <- fmt.Sprintf("%s %s %d", what, key, size)
		}
		if _, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { told("add", object) },
			UpdateFunc: func(_, object any) { told("update", object) },
			DeleteFunc: func(object any) { told("delete", object) },
		}); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer factory.Shutdown()
		defer cancel()
		factory.Start(ctx.Done())
		if !cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced, maps.Informer().HasSynced) {
			return fmt.Errorf("the caches did not sync")
		}
		later, err := ours.Create(ctx, gadget("later"), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if err := unstructured.SetNestedField(later.Object, int64(5), "spec", "size"); err != nil {
			return err
		}
		if _, err := ours.Update(ctx, later, metav1.UpdateOptions{}); err != nil {
			return err
		}
		if err := ours.Delete(ctx, "later", metav1.DeleteOptions{}); err != nil {
			return err
		}
		for _, wanted := range []string{"add default/before 3", "add default/later 3", "update default/later 5", "delete default/later 5"} {
			select {
			case got := <-seen:
				if err := expect(got == wanted, "saw %q, not %q", got, wanted); err != nil {
					return err
				}
			case <-ctx.Done():
				return fmt.Errorf("never saw %q", wanted)
			}
		}
		if _, err := informer.Lister().ByNamespace(namespace).Get("before"); err != nil {
			return err
		}
		_, err = maps.Lister().ByNamespace(namespace).Get("before")
		return err
	}
}
