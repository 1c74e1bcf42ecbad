// A candidate that is client-go's own elector: it prints one line for each thing that happens, and nothing else.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "file")
	lockType := flag.String("lock", "leases", "kind of lock")
	name := flag.String("name", "", "name of the lock")
	id := flag.String("id", "", "identity")
	lease := flag.Duration("lease", 15*time.Second, "lease duration")
	deadline := flag.Duration("deadline", 10*time.Second, "renew deadline")
	retry := flag.Duration("retry", 2*time.Second, "retry period")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	check(err)
	core, err := corev1.NewForConfig(config)
	check(err)
	coordination, err := coordinationv1.NewForConfig(config)
	check(err)
	lock, err := resourcelock.New(*lockType, "default", *name, core, coordination, resourcelock.ResourceLockConfig{Identity: *id})
	check(err)

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock:            lock,
		ReleaseOnCancel: true,
		LeaseDuration:   *lease,
		RenewDeadline:   *deadline,
		RetryPeriod:     *retry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { fmt.Println("leading") },
			OnStoppedLeading: func() { fmt.Println("stopped") },
			OnNewLeader:      func(identity string) { fmt.Println("leader", identity) },
		},
	})
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
