module deltaloop/lab/interop/go_patterns

go 1.24
