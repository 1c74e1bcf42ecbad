module deltaloop/unicode_tables

go 1.24
