// Writes the fields of Kubernetes' API types: number, JSON name, type, and when Go leaves a field out of JSON.
//
// Standard input names the kinds, one per line ("apps/v1 Deployment"); the table goes to standard output. Its format
// is described in table.py. The facts are read by reflection from the struct tags of the published modules, which their
// .proto files are made from, too: these have the numbers, and only the tags have what is omitted when empty.
package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	publishedscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// Types whose JSON is not that of their fields.
var special = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():                                  "time",
	reflect.TypeFor[metav1.MicroTime]():                             "microtime",
	reflect.TypeFor[metav1.Duration]():                              "duration",
	reflect.TypeFor[resource.Quantity]():                            "quantity",
	reflect.TypeFor[intstr.IntOrString]():                           "intorstring",
	reflect.TypeFor[runtime.RawExtension]():                         "json",
	reflect.TypeFor[metav1.FieldsV1]():                              "json",
	reflect.TypeFor[apiextensionsv1.JSON]():                         "json",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():        "schemaorbool",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():       "schemaorarray",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](): "schemaorstrings",
}

var (
	typeMeta = reflect.TypeFor[metav1.TypeMeta]()
	duration = reflect.TypeFor[metav1.Duration]()
)

type table struct {
	order []reflect.Type
	names map[reflect.Type]string
	used  map[string]reflect.Type
}

// name gives a message its name in the table: the Go type's, with its package in front where two would be alike.
func (t *table) name(message reflect.Type) string {
	if name, ok := t.names[message]; ok {
		return name
	}
	name := message.Name()
	if _, taken := t.used[name]; taken {
		parts := strings.Split(message.PkgPath(), "/")
		name = strings.Join(parts[len(parts)-2:], "_") + "_" + name
	}
	t.names[message], t.used[name] = name, message
	t.order = append(t.order, message)
	return name
}

// marshals says whether a type has a message of its own on the wire.
func marshals(t reflect.Type) bool {
	_, ok := reflect.PointerTo(t).MethodByName("MarshalToSizedBuffer")
	return ok
}

func (t *table) kindOf(f reflect.StructField, of reflect.Type, wire string) string {
	if name, ok := special[of]; ok {
		if strings.HasPrefix(name, "schemaor") {
			t.name(reflect.TypeFor[apiextensionsv1.JSONSchemaProps]())
		}
		return name
	}
	switch of.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int32:
		return "int32"
	case reflect.Int64:
		return "int64"
	case reflect.Float64:
		return "double"
	case reflect.Struct:
		if of != duration { // no kind of the table has one so far
			return t.name(of)
		}
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		if of.Elem().Kind() == reflect.String && marshals(of) {
			return "strings"
		}
	}
	panic(fmt.Sprintf("%s: no type in the table for %s (%s)", f.Name, of, wire))
}

func (t *table) field(f reflect.StructField) string {
	tag, ok := f.Tag.Lookup("protobuf")
	if !ok || tag == "-" {
		if f.Type == typeMeta || tag == "-" || !f.IsExported() {
			return ""
		}
		panic(f.Name + ": no number")
	}
	wire := strings.Split(tag, ",")
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	flags, of := "", f.Type
	switch {
	case name == "" && (f.Anonymous || strings.Contains(options, "inline")):
		name, flags = "-", "<"
		if of.Kind() != reflect.Struct {
			panic(f.Name + ": inlined, but no struct")
		}
	case name == "-" || name == "":
		panic(f.Name + ": no JSON name")
	case strings.Contains(options, "omitzero"):
		flags = "~"
	case !strings.Contains(options, "omitempty"):
		flags = "!"
	}
	switch {
	case of.Kind() == reflect.Pointer:
		flags, of = flags+"?", of.Elem()
	case of.Kind() == reflect.Map:
		if of.Key().Kind() != reflect.String {
			panic(f.Name + ": keys are no strings")
		}
		flags, of = flags+"%", of.Elem()
	case of.Kind() == reflect.Slice && of.Elem().Kind() != reflect.Uint8 && !marshals(of):
		flags, of = flags+"*", of.Elem()
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
	}
	return fmt.Sprintf(" %s=%s%s%s", name, wire[1], flags, t.kindOf(f, of, tag))
}

func main() {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		publishedscheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	t := &table{names: map[reflect.Type]string{}, used: map[string]reflect.Type{}}
	kinds := map[string][]string{}
	var versions []string
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		version, kind, _ := strings.Cut(lines.Text(), " ")
		group, err := schema.ParseGroupVersion(version)
		if err != nil {
			panic(err)
		}
		object, err := scheme.New(group.WithKind(kind))
		if err != nil {
			panic(err)
		}
		if kinds[version] == nil {
			versions = append(versions, version)
		}
		name := t.name(reflect.TypeOf(object).Elem())
		if name != kind {
			kind += ":" + name
		}
		kinds[version] = append(kinds[version], kind)
	}
	fmt.Println("# Fields of Kubernetes' API types. Made by tools/protobuf_table/generate.py from")
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if slices.Contains([]string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver", "k8s.io/kube-aggregator"}, module.Path) {
			fmt.Printf("# %s %s\n", module.Path, module.Version)
		}
	}
	fmt.Println("# (Apache License 2.0, The Kubernetes Authors); do not edit.")
	for _, version := range versions {
		fmt.Printf("@%s %s\n", version, strings.Join(kinds[version], " "))
	}
	for at := 0; at < len(t.order); at++ { // grows while it is gone through
		message := t.order[at]
		line := t.names[message]
		for _, f := range reflect.VisibleFields(message) {
			if len(f.Index) == 1 {
				line += t.field(f)
			}
		}
		fmt.Println(line)
	}
}
