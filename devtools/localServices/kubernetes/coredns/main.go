// CoreDNS with the few plugins that a small cluster needs. Version 1.14.1 is the last whose packages are those of Kubernetes 1.36, so
// that building it costs seconds.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func main() {
	dnsserver.Directives = []string{"bind", "errors", "hosts", "kubernetes"}
	coremain.Run()
}
