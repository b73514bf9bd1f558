// SPDX-License-Identifier: Apache-2.0

package depcheck

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Picture is the rooms in the actual code: their size, floor and imports.
type Picture struct {
	Rooms  []Drawn
	Arrows []Arrow
}

// Drawn is one room of the picture.
type Drawn struct {
	Path            string
	Floor           int // 1 imports no other room
	Packages, Lines int // lines of source, without tests
}

// Arrow is the imports from the packages of one room to those of another.
type Arrow struct {
	From, To string
	Imports  int
}

// Draw draws the packages. It omits those in no room: Check reports them.
func (r Rules) Draw(pkgs []Package) Picture {
	var p Picture
	arrows := map[[2]string]int{}
	for _, room := range r.Rooms {
		drawn := Drawn{Path: room.Path}
		for _, pkg := range pkgs {
			if in, ok := r.room(pkg.Path); !ok || in.Path != room.Path {
				continue
			}
			drawn.Packages++
			drawn.Lines += pkg.Lines
			for _, path := range pkg.Imports {
				inside, ok := strings.CutPrefix(path, r.Module+"/")
				if to, found := r.room(inside); ok && found && to.Path != room.Path {
					arrows[[2]string{room.Path, to.Path}]++
				}
			}
		}
		p.Rooms = append(p.Rooms, drawn)
	}
	for ends, n := range arrows {
		p.Arrows = append(p.Arrows, Arrow{ends[0], ends[1], n})
	}
	slices.SortFunc(p.Arrows, func(a, b Arrow) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	p.place()
	return p
}

// place puts each room above everything it imports. Rooms that import each other,
// which Check refuses, stop moving after as many turns as there are rooms.
func (p *Picture) place() {
	floor := map[string]int{}
	for range p.Rooms {
		for _, a := range p.Arrows {
			floor[a.From] = max(floor[a.From], floor[a.To]+1)
		}
	}
	for i := range p.Rooms {
		p.Rooms[i].Floor = floor[p.Rooms[i].Path] + 1
	}
	slices.SortStableFunc(p.Rooms, func(a, b Drawn) int { return cmp.Compare(b.Floor, a.Floor) })
}

// Upwards are the arrows that do not lead to a lower floor; none if Check
// accepts.
func (p Picture) Upwards() []Arrow {
	floor := map[string]int{}
	for _, room := range p.Rooms {
		floor[room.Path] = room.Floor
	}
	return slices.DeleteFunc(slices.Clone(p.Arrows), func(a Arrow) bool { return floor[a.From] > floor[a.To] })
}

// Text writes the picture as a table.
func (p Picture) Text(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%-6s %-18s %8s %8s  %s\n", "FLOOR", "ROOM", "PACKAGES", "LINES", "IMPORTS")
	for _, room := range p.Rooms {
		var below []string
		for _, a := range p.Arrows {
			if a.From == room.Path {
				below = append(below, strings.TrimPrefix(a.To, "internal/"))
			}
		}
		if err == nil {
			_, err = fmt.Fprintf(w, "%-6d %-18s %8d %8d  %s\n", room.Floor, room.Path, room.Packages, room.Lines, cmp.Or(strings.Join(below, " "), "-"))
		}
	}
	if err == nil {
		_, err = fmt.Fprintf(w, "%d rooms, %d arrows, %d upwards\n", len(p.Rooms), len(p.Arrows), len(p.Upwards()))
	}
	return err
}

// The size of the drawing, in SVG user units.
const (
	boxWidth, boxHeight = 170, 54
	gapX, gapY          = 30, 56
)

// SVG writes the picture: a box for each room, the lowest floor at the bottom.
func (p Picture) SVG(w io.Writer) error {
	top, widest := 0, 0
	count := map[int]int{}
	for _, room := range p.Rooms {
		top = max(top, room.Floor)
		count[room.Floor]++
		widest = max(widest, count[room.Floor])
	}
	width, height := widest*(boxWidth+gapX)+gapX, top*(boxHeight+gapY)+gapY
	type point struct{ x, y int }
	at, seen := map[string]point{}, map[int]int{}
	var boxes, lines strings.Builder
	for _, room := range p.Rooms {
		row := count[room.Floor]*(boxWidth+gapX) - gapX
		x := (width-row)/2 + seen[room.Floor]*(boxWidth+gapX)
		y := gapY/2 + (top-room.Floor)*(boxHeight+gapY)
		seen[room.Floor]++
		at[room.Path] = point{x, y}
		fmt.Fprintf(&boxes, `<g><rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="#eef4fb" stroke="#2b5c8a"/>`, x, y, boxWidth, boxHeight)
		fmt.Fprintf(&boxes, `<text x="%d" y="%d" text-anchor="middle" font-weight="bold">%s</text>`, x+boxWidth/2, y+23, strings.TrimPrefix(room.Path, "internal/"))
		fmt.Fprintf(&boxes, `<text x="%d" y="%d" text-anchor="middle" fill="#555">%d packages, %d lines</text></g>`+"\n", x+boxWidth/2, y+42, room.Packages, room.Lines)
	}
	for _, a := range p.Arrows {
		from, to := at[a.From], at[a.To]
		fmt.Fprintf(&lines, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#8aa" marker-end="url(#head)"><title>%s imports %s: %d</title></line>`+"\n",
			from.x+boxWidth/2, from.y+boxHeight, to.x+boxWidth/2, to.y, a.From, a.To, a.Imports)
	}
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">
<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#8aa"/></marker></defs>
%s%s</svg>
`, width, height, lines.String(), boxes.String())
	return err
}
