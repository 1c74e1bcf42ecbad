"""The differential fuzzer: the same random requests to two servers, and one answer is expected of both."""
