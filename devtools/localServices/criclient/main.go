// Relists as the kubelet does, with the kubelet's own CRI client, and prints the cost for this process.
//
//	criclient -socket /run/containerd/containerd.sock [-warm 5] [-relists 60] [-period 1s]
//
// One relist is ListPodSandbox and ListContainers without a filter, as in the kubelet's generic PLEG. Warm-up relists are
// not counted. It prints one JSON object; it ends with an error when a list fails.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/trace/noop"
	internalapi "k8s.io/cri-api/pkg/apis"
	remote "k8s.io/cri-client/pkg"
)

// The kubelet's default of --runtime-request-timeout.
const requestTimeout = 2 * time.Minute

type result struct {
	Relists    int     `json:"relists"`
	Seconds    float64 `json:"seconds"`
	CPUMillis  float64 `json:"cpuMillis"`
	RSSBytes   int64   `json:"rssBytes"`
	Sandboxes  int     `json:"sandboxes"`
	Containers int     `json:"containers"`
}

func main() {
	socket := flag.String("socket", "", "path of the runtime's socket")
	warm := flag.Int("warm", 5, "warm-up relists")
	relists := flag.Int("relists", 60, "relists to count")
	period := flag.Duration("period", time.Second, "time from one relist to the next")
	flag.Parse()
	measured, err := measure(*socket, *warm, *relists, *period)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(measured)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "criclient:", err)
		os.Exit(1)
	}
}

func measure(socket string, warm, relists int, period time.Duration) (result, error) {
	ctx := context.Background()
	// With tracing off the kubelet passes this provider, not nil, and lists without streaming.
	client, err := remote.NewRemoteRuntimeService(ctx, "unix://"+socket, requestTimeout, noop.NewTracerProvider(), false)
	if err != nil {
		return result{}, err
	}
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for range warm {
		if _, err := relist(ctx, client); err != nil {
			return result{}, err
		}
		<-ticker.C
	}
	began, before := time.Now(), cpu()
	var last result
	for range relists {
		if last, err = relist(ctx, client); err != nil {
			return result{}, err
		}
		<-ticker.C
	}
	last.Relists = relists
	last.Seconds = time.Since(began).Seconds()
	last.CPUMillis = float64((cpu() - before).Microseconds()) / 1000
	last.RSSBytes, err = residentBytes()
	return last, err
}

func relist(ctx context.Context, client internalapi.RuntimeService) (result, error) {
	sandboxes, err := client.ListPodSandbox(ctx, nil)
	if err != nil {
		return result{}, err
	}
	containers, err := client.ListContainers(ctx, nil)
	return result{Sandboxes: len(sandboxes), Containers: len(containers)}, err
}

// cpu is the user and system time that this process has used.
func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func residentBytes() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(status), "\n") {
		if value, found := strings.CutPrefix(line, "VmRSS:"); found {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib * 1024, err
		}
	}
	return 0, fmt.Errorf("no VmRSS in /proc/self/status")
}
