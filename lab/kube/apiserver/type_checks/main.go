// type_checks answers policies, one JSON object a line, with the warnings that the status controller of
// ValidatingAdmissionPolicies would write; the schemas of custom resources come with the question.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsscheme "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/scheme"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	k8sscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/generated/openapi"
)

type custom struct {
	Group   string       `json:"group"`
	Version string       `json:"version"`
	Kind    string       `json:"kind"`
	Schema  *spec.Schema `json:"schema"`
}

type question struct {
	Policy  *admissionv1.ValidatingAdmissionPolicy `json:"policy"`
	Customs []custom                               `json:"customs"`
}

type schemas map[schema.GroupVersionKind]*spec.Schema

func (known schemas) ResolveSchema(kind schema.GroupVersionKind) (*spec.Schema, error) {
	if found, ok := known[kind]; ok {
		return found, nil
	}
	return nil, fmt.Errorf("%v: %w", kind, resolver.ErrSchemaNotFound)
}

func main() {
	definitions := resolver.NewDefinitionsSchemaResolver(openapi.GetOpenAPIDefinitions, k8sscheme.Scheme, apiextensionsscheme.Scheme)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		mapper := meta.NewDefaultRESTMapper(nil)
		for _, known := range []*runtime.Scheme{k8sscheme.Scheme, apiextensionsscheme.Scheme} {
			for kind := range known.AllKnownTypes() {
				mapper.Add(kind, meta.RESTScopeRoot)
			}
		}
		own := schemas{}
		for _, one := range asked.Customs {
			kind := schema.GroupVersionKind{Group: one.Group, Version: one.Version, Kind: one.Kind}
			own[kind] = one.Schema
			mapper.Add(kind, meta.RESTScopeRoot)
		}
		checker := &validating.TypeChecker{SchemaResolver: definitions.Combine(own), RestMapper: mapper}
		if err := answers.Encode(checker.Check(asked.Policy)); err != nil {
			panic(err)
		}
	}
}
