// controller-runtime, whose own suites are run against the embedded server.
module deltaloop/lab/interop/controller_runtime

go 1.26.0

require sigs.k8s.io/controller-runtime v0.25.2
