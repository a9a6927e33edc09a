// One binary that is kube-apiserver, kube-controller-manager or kube-scheduler, by the name it is started under.
package main

import (
	"os"
	"path/filepath"

	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	switch filepath.Base(os.Args[0]) {
	case "kube-controller-manager":
		os.Exit(cli.Run(manager.NewControllerManagerCommand()))
	case "kube-scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	default:
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	}
}
