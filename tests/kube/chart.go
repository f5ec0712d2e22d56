// chart renders a Helm chart as Helm does, as far as ours needs it: no Helm is in
// Debian 12, its template functions are.
//
//	GO111MODULE=off GOPATH=/usr/share/gocode go run chart.go CHART RELEASE NAMESPACE API-VERSIONS < values.yaml
//
// API-VERSIONS: what the cluster has, with commas. Values come over those of the
// chart.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"github.com/ghodss/yaml"
)

type versions []string

func (v versions) Has(name string) bool {
	for _, x := range v {
		if x == name {
			return true
		}
	}
	return false
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func readYAML(text []byte) map[string]interface{} {
	m := map[string]interface{}{}
	check(yaml.Unmarshal(text, &m))
	return m
}

func merge(into, from map[string]interface{}) {
	for k, v := range from {
		a, isMap := into[k].(map[string]interface{})
		b, both := v.(map[string]interface{})
		if isMap && both {
			merge(a, b)
		} else {
			into[k] = v
		}
	}
}

func functions(t *template.Template) template.FuncMap {
	f := sprig.TxtFuncMap()
	f["toYaml"] = func(v interface{}) string {
		b, err := yaml.Marshal(v)
		check(err)
		return strings.TrimSuffix(string(b), "\n")
	}
	f["include"] = func(name string, data interface{}) (string, error) {
		var b strings.Builder
		err := t.ExecuteTemplate(&b, name, data)
		return b.String(), err
	}
	return f
}

func main() {
	chart, release, namespace := os.Args[1], os.Args[2], os.Args[3]
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	check(err)
	values := readYAML(text)
	more, err := io.ReadAll(os.Stdin)
	check(err)
	merge(values, readYAML(more))
	text, err = os.ReadFile(filepath.Join(chart, "Chart.yaml"))
	check(err)
	about := readYAML(text)
	t := template.New("chart").Option("missingkey=zero")
	t.Funcs(functions(t))
	paths, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	check(err)
	for _, p := range paths {
		text, err := os.ReadFile(p)
		check(err)
		_, err = t.New(filepath.Base(p)).Parse(string(text))
		check(err)
	}
	data := map[string]interface{}{
		"Values":  values,
		"Chart":   map[string]interface{}{"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"]},
		"Release": map[string]interface{}{"Name": release, "Namespace": namespace, "Service": "Helm"},
		"Capabilities": map[string]interface{}{
			"APIVersions": versions(strings.Split(os.Args[4], ",")),
		},
	}
	for _, p := range paths {
		if strings.HasSuffix(p, ".yaml") {
			fmt.Println("---")
			check(t.ExecuteTemplate(os.Stdout, filepath.Base(p), data))
		}
	}
}
