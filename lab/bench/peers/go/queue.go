package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// queue prints nanoseconds of CPU for each operation of client-go's work queue, as lab/bench/workqueue.py measures ours.
func queue(arguments []string) {
	size, err := strconv.Atoi(arguments[0])
	must(err)
	keys := make([]string, size)
	for number := range keys {
		keys[number] = fmt.Sprintf("namespace-%d/name-%d", number%50, number)
	}
	each := func(began float64) float64 { return (cpuSeconds() - began) / float64(size) * 1e9 }

	plain := workqueue.NewTyped[string]()
	runtime.GC()
	began := cpuSeconds()
	for _, key := range keys {
		plain.Add(key)
	}
	add := each(began)
	began = cpuSeconds()
	for range keys {
		plain.Get()
	}
	get := each(began)
	began = cpuSeconds()
	for _, key := range keys {
		plain.Done(key)
	}
	done := each(began)
	plain.ShutDown()

	delaying := workqueue.NewTypedDelayingQueue[string]()
	runtime.GC()
	began = cpuSeconds()
	for number, key := range keys {
		delaying.AddAfter(key, 100*time.Millisecond+time.Duration(number*7919%size)*time.Microsecond)
	}
	for range keys {
		key, _ := delaying.Get()
		delaying.Done(key)
	}
	delayed := each(began)
	delaying.ShutDown()

	text, err := json.Marshal(map[string]float64{"add": add, "get": get, "done": done, "delayed": delayed})
	must(err)
	fmt.Println(string(text))
}
