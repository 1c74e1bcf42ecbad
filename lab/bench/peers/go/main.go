// client-go as a peer: a shared informer of a factory, dynamic or typed, one index by label, one handler. Follows the
// protocol of lab/bench/peers/peer.py. Asked for "queue", it measures its work queue instead, and asked for "protobuf" it makes
// protobuf of JSON for the replay server.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	sentAnnotation   = "bench.deltaloop.dev/sent"
	probeApplication = "app-0007"
)

func monotonic() int64 {
	var now unix.Timespec
	must(unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	return now.Nano()
}

func cpuSeconds() float64 {
	var used syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "client-go peer:", err)
		os.Exit(1)
	}
}

type facts map[string]any

func say(at string, more facts) {
	answer := facts{"at": at, "cpu": cpuSeconds(), "wall": float64(monotonic()) / 1e9}
	for name, value := range more {
		answer[name] = value
	}
	text, err := json.Marshal(answer)
	must(err)
	fmt.Println(string(text))
}

// counter counts the handler's calls, and how late they are while that is measured.
type counter struct {
	left      atomic.Int64
	paced     atomic.Bool
	latencies []int64
	reached   chan struct{}
}

func (c *counter) expect(events int64, paced bool) {
	c.latencies = nil
	c.paced.Store(paced)
	c.left.Store(events)
}

func (c *counter) OnAdd(any, bool) {}
func (c *counter) OnDelete(any)    {}
func (c *counter) OnUpdate(_, updated any) {
	if c.paced.Load() {
		sent, err := strconv.ParseInt(updated.(metav1.Object).GetAnnotations()[sentAnnotation], 10, 64)
		must(err)
		c.latencies = append(c.latencies, monotonic()-sent)
	}
	if c.left.Add(-1) == 0 {
		c.reached <- struct{}{}
	}
}

func (c *counter) percentiles() map[string]float64 {
	ordered := slices.Sorted(slices.Values(c.latencies))
	if len(ordered) == 0 {
		return map[string]float64{}
	}
	at := func(share float64) float64 {
		return float64(ordered[min(len(ordered)-1, int(share*float64(len(ordered))))]) / 1e3
	}
	return map[string]float64{"p50": at(0.5), "p99": at(0.99)}
}

func informer(config *rest.Config, form string) cache.SharedIndexInformer {
	if form == "typed" {
		client, err := kubernetes.NewForConfig(config)
		must(err)
		return informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer()
	}
	client, err := dynamic.NewForConfig(config)
	must(err)
	kind := schema.GroupVersionResource{Group: "bench.deltaloop.dev", Version: "v1", Resource: "widgets"}
	if os.Getenv("BENCH_KIND") == "pods" {
		kind = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	}
	return dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(kind).Informer()
}

func byApplication(object any) ([]string, error) {
	return []string{object.(metav1.Object).GetLabels()["app"]}, nil
}

func probe(store cache.Indexer, key string) facts {
	object, _, err := store.GetByKey(key)
	must(err)
	found, err := store.ByIndex("application", probeApplication)
	must(err)
	return facts{"probe_version": object.(metav1.Object).GetResourceVersion(), "indexed": len(found)}
}

func peer(form string) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	must(err)
	config.QPS = -1 // without its limit of 5 requests a second, which would make the pages slow
	informer := informer(config, form)
	must(informer.AddIndexers(cache.Indexers{"application": byApplication}))
	count := &counter{reached: make(chan struct{}, 1)}
	handler, err := informer.AddEventHandler(count)
	must(err)
	say("ready", nil)
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		words := strings.Fields(commands.Text())
		switch words[0] {
		case "list":
			go informer.Run(make(chan struct{}))
			for !handler.HasSynced() {
				time.Sleep(time.Millisecond)
			}
			say("synced", facts{"objects": len(informer.GetStore().ListKeys())})
		case "settle":
			runtime.GC()
			debug.FreeOSMemory()
			say("settled", nil)
		case "events", "pace":
			events, err := strconv.ParseInt(words[1], 10, 64)
			must(err)
			count.expect(events, words[0] == "pace")
			say("listening", nil)
			<-count.reached
			more := probe(informer.GetIndexer(), words[2])
			more["latencies"] = count.percentiles()
			say("done", more)
		default:
			return
		}
	}
}

func main() {
	form := "dynamic"
	if len(os.Args) > 1 {
		form = os.Args[1]
	}
	switch form {
	case "dynamic", "typed":
		peer(form)
	case "protobuf":
		protobuf()
	case "queue":
		queue(os.Args[2:])
	default:
		fmt.Fprintln(os.Stderr, "usage: peer dynamic|typed (typed: pods only) | protobuf | queue SIZE")
		os.Exit(2)
	}
}
