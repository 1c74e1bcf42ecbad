// Says what Go thinks of patterns: reads JSON objects with a pattern and texts, one a line, and answers each with the
// error of compiling it, or with whether each text matches.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"regexp"
)

type question struct {
	Pattern string
	Texts   []string
}

type answer struct {
	Error   string `json:"error"`
	Matches []bool `json:"matches"`
}

func main() {
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	for in.More() {
		var asked question
		if err := in.Decode(&asked); err != nil {
			panic(err)
		}
		said := answer{Matches: []bool{}}
		compiled, err := regexp.Compile(asked.Pattern)
		if err != nil {
			said.Error = err.Error()
		} else {
			for _, text := range asked.Texts {
				said.Matches = append(said.Matches, compiled.MatchString(text))
			}
		}
		if err := encoder.Encode(said); err != nil {
			panic(err)
		}
	}
}
