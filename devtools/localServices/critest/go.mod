// Builds critest, the CRI's validation tests. Its only package is a test, which go mod tidy does not see; another version is taken with
// go get -t sigs.k8s.io/cri-tools/cmd/critest@VERSION.
module plegwatch.dev/devtools/critest

go 1.26.2

require sigs.k8s.io/cri-tools v1.36.0 // indirect
