module deltaloop/tests/interop/go_patterns

go 1.24
