// cel_go answers expressions, one JSON object a line, in the environment that kube-apiserver gives to stored ones:
// what is wrong with it, its type and value or error, what it cost, and what it would cost by estimate.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/ext"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

type question struct {
	Expression string         `json:"expression"`
	Bindings   map[string]any `json:"bindings"`
}

type answer struct {
	Faults   string          `json:"faults,omitempty"`
	Program  string          `json:"program,omitempty"`
	Type     string          `json:"type,omitempty"`
	Error    string          `json:"error,omitempty"`
	Value    json.RawMessage `json:"value,omitempty"`
	Cost     *uint64         `json:"cost,omitempty"`
	Estimate []string        `json:"estimate,omitempty"`
}

// How large what is at a path may be, as a schema would say it.
var sizes = map[string]uint64{
	"s": 20, "l": 10, "m": 5, "m.@keys": 7, "names": 8, "names.@items": 12, "lists": 3, "lists.@items": 4,
	"lists.@items.@items": 6, "texts": 6, "texts.@keys": 7, "texts.@values": 9, "o.name": 30, "o.labels": 5,
	"o.labels.@keys": 11, "o.labels.@values": 13, "o.ports": 16, "o.ports.@items.name": 15, "o.text": 1000,
}

type sizer struct{}

func (sizer) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	if most, ok := sizes[strings.Join(node.Path(), ".")]; ok {
		return &checker.SizeEstimate{Min: 0, Max: most}
	}
	return nil
}

func (sizer) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

func field(name string, of *apiservercel.DeclType) *apiservercel.DeclField {
	return apiservercel.NewDeclField(name, of, true, nil, nil)
}

func main() {
	text, integer := apiservercel.StringType, apiservercel.IntType
	port := apiservercel.NewObjectType("Object.ports.@idx", map[string]*apiservercel.DeclField{
		"port": field("port", integer), "name": field("name", text),
	})
	object := apiservercel.NewObjectType("Object", map[string]*apiservercel.DeclField{
		"name": field("name", text), "replicas": field("replicas", integer), "text": field("text", text),
		"labels": field("labels", apiservercel.NewMapType(text, text, -1)),
		"ports":  field("ports", apiservercel.NewListType(port, -1)),
		"ratio":  field("ratio", apiservercel.DoubleType),
	})
	set, err := environment.MustBaseEnvSet(version.MajorMinor(1, 37)).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		DeclTypes:         []*apiservercel.DeclType{object},
	})
	if err != nil {
		panic(err)
	}
	strings := cel.ListType(cel.StringType)
	env, err := set.StoredExpressionsEnv().Extend(ext.Bindings(),
		cel.Variable("x", cel.DynType), cel.Variable("self", cel.DynType), cel.Variable("i", cel.IntType),
		cel.Variable("s", cel.StringType), cel.Variable("l", cel.ListType(cel.IntType)),
		cel.Variable("m", cel.MapType(cel.StringType, cel.IntType)), cel.Variable("names", strings),
		cel.Variable("lists", cel.ListType(strings)), cel.Variable("texts", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("o", object.CelType()), cel.Variable("d", cel.DynType))
	if err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 1<<24)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		told, _ := json.Marshal(answered(env, asked))
		out.Write(append(told, '\n'))
	}
}

func answered(env *cel.Env, asked question) (told answer) {
	defer func() {
		if why := recover(); why != nil {
			told.Error = fmt.Sprintf("panic: %v", why)
		}
	}()
	ast, issues := env.Compile(asked.Expression)
	if issues.Err() != nil {
		told.Faults = issues.Err().Error()
		return told
	}
	told.Type = ast.OutputType().String()
	if estimate, err := env.EstimateCost(ast, &library.CostEstimator{SizeEstimator: sizer{}}); err == nil {
		told.Estimate = []string{fmt.Sprint(estimate.Min), fmt.Sprint(estimate.Max)}
	}
	program, err := env.Program(ast)
	if err != nil {
		told.Program = err.Error()
		return told
	}
	bindings := map[string]any{}
	for name, value := range asked.Bindings {
		bindings[name] = native(value)
	}
	value, details, err := program.Eval(bindings)
	told.Cost = details.ActualCost()
	if err != nil {
		told.Error = err.Error()
		return told
	}
	if found, err := value.ConvertToNative(reflect.TypeOf(&structpb.Value{})); err == nil {
		told.Value, _ = protojson.Marshal(found.(*structpb.Value))
	}
	return told
}

// native makes integers of whole numbers, as a decoder that knows the schema would.
func native(value any) any {
	switch found := value.(type) {
	case float64:
		if found == float64(int64(found)) {
			return int64(found)
		}
	case []any:
		for place, item := range found {
			found[place] = native(item)
		}
	case map[string]any:
		for key, item := range found {
			found[key] = native(item)
		}
	}
	return value
}
