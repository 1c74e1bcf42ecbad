// Writes the Unicode tables that patterns may name, as Go has them: `generate.py` runs it.
//
// One table a line, `kind name numbers`: `set` has runs (distance from the end of the one before, length less one),
// `alias` has the name of a set, `fold` has letters that are one without regard to case, each as the distance to the
// one before.
package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"unicode"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	fmt.Fprintf(out, "version %s\n", unicode.Version)
	for _, tables := range []map[string]*unicode.RangeTable{unicode.Categories, unicode.Scripts} {
		for _, name := range sorted(tables) {
			fmt.Fprintf(out, "set %s%s\n", name, runs(tables[name]))
		}
	}
	for _, name := range sorted(unicode.CategoryAliases) {
		fmt.Fprintf(out, "alias %s %s\n", name, unicode.CategoryAliases[name])
	}
	for letter := rune(0); letter <= unicode.MaxRune; letter++ {
		orbit := []rune{letter}
		for next := unicode.SimpleFold(letter); next != letter; next = unicode.SimpleFold(next) {
			orbit = append(orbit, next)
		}
		if len(orbit) > 1 && slices.Min(orbit) == letter {
			slices.Sort(orbit)
			fmt.Fprint(out, "fold -")
			before := rune(0)
			for _, each := range orbit {
				fmt.Fprint(out, " ", strconv.FormatInt(int64(each-before), 36))
				before = each
			}
			fmt.Fprintln(out)
		}
	}
}

func sorted[Value any](tables map[string]Value) []string {
	names := []string{}
	for name := range tables {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func runs(table *unicode.RangeTable) string {
	text, end, first := "", rune(0), rune(-1)
	write := func(last rune) {
		if first >= 0 {
			text += " " + strconv.FormatInt(int64(first-end), 36) + " " + strconv.FormatInt(int64(last-first), 36)
			end = last
		}
	}
	last := rune(-2)
	add := func(letter rune) {
		if letter != last+1 {
			write(last)
			first = letter
		}
		last = letter
	}
	for _, each := range table.R16 {
		for letter := rune(each.Lo); letter <= rune(each.Hi); letter += rune(each.Stride) {
			add(letter)
		}
	}
	for _, each := range table.R32 {
		for letter := rune(each.Lo); letter <= rune(each.Hi); letter += rune(each.Stride) {
			add(letter)
		}
	}
	write(last)
	return text
}
