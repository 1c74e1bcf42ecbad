package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"os"

	corev1 "k8s.io/api/core/v1"
)

// protobuf reads Pods as lines of JSON and writes them as messages, each with its length in four bytes before it: what
// the replay server sends to clients that prefer protobuf.
func protobuf() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := bufio.NewWriter(os.Stdout)
	for lines.Scan() {
		var pod corev1.Pod
		must(json.Unmarshal(lines.Bytes(), &pod))
		message, err := pod.Marshal()
		must(err)
		must(binary.Write(out, binary.BigEndian, uint32(len(message))))
		_, err = out.Write(message)
		must(err)
	}
	must(lines.Err())
	must(out.Flush())
}
