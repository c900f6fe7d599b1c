// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/cli/chart"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/textutil"
)

func newChart(s *screen.Screen) *cobra.Command {
	var dir, project string
	c := &cobra.Command{
		Use:     "chart",
		Short:   "Write a Helm chart from the manifests of a project",
		GroupID: "write",
		Long: `Write a Helm chart from the manifests of a project that "admitkit init" generated.

The manifests in config/ remain the only source: edit them, not the chart. Run the
command again when they change. It replaces the chart. The chart has a value for
everything that differs between clusters: the namespace of the release, the image,
replicas, resources, the PriorityClass, the node selector, the API server ports, and
whether there is a Prometheus Operator. values.yaml has the defaults from the
manifests.

Create the namespace before "helm install". The chart then makes it the owner of
the webhook configurations, so Kubernetes deletes them with the namespace. Without
an owner, they would remain and block requests.`,
		Example: `
admitkit chart
helm lint bin/chart
kubectl create namespace shop && helm install shop bin/chart --namespace shop --set image.tag=v0.2.0`,
		Args: arguments(),
		RunE: func(*cobra.Command, []string) error {
			made, err := chart.Of(project)
			if err != nil {
				return err
			}
			if err := made.Write(dir); err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.Out, "%s: %s of chart %s\n", dir, textutil.Count(len(made.Files), "file"), made.Name)
			return err
		},
	}
	c.Flags().StringVar(&dir, "dir", "bin/chart", "folder for the chart: a new or empty folder, or one with an earlier chart")
	c.Flags().StringVar(&project, "project", ".", "folder of the project, or a folder in it")
	_ = c.MarkFlagDirname("dir") // fails only if the flag does not exist
	_ = c.MarkFlagDirname("project")
	return c
}
