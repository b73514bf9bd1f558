// SPDX-License-Identifier: Apache-2.0

package published

import (
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
)

func imageCell(name string) experiment.Cell {
	return experiment.Cell{Tool: experiment.ToolImage, Image: name, Runtime: chain.RuntimeRunc}
}

func imageRun(profile string, rounds int, names ...string) *report.ExperimentsRun {
	e := experiment.Experiment{Name: "x"}
	for _, name := range names {
		e.Rows = append(e.Rows, experiment.Row{Name: name, Title: name, Figure: "runs", Cell: imageCell(name)})
	}
	return &report.ExperimentsRun{Profile: profile, Rounds: rounds, Trial: time.Second, Experiments: []experiment.Experiment{e}, Skipped: map[string]string{}}
}

func TestQuickBuildsFewImages(t *testing.T) {
	t.Setenv("DRAY_IMAGES", t.TempDir())
	quick, paper := imageRun("quick", 5, "debian", "dpdk"), imageRun("paper", 5, "debian", "dpdk")
	LeaveOutImages(quick)
	LeaveOutImages(paper)
	if why := quick.Skipped[imageCell("dpdk").String()]; !strings.Contains(why, "dray image dpdk") || len(quick.Skipped) != 1 {
		t.Errorf("%v", quick.Skipped)
	}
	if len(paper.Skipped) != 0 {
		t.Errorf("%v", paper.Skipped)
	}
}

// An image is built and tried once, however many rounds there are.
func TestImagesAreEstimatedOnce(t *testing.T) {
	t.Setenv("DRAY_IMAGES", t.TempDir())
	if one, five := Estimate(imageRun("paper", 1, "dpdk")), Estimate(imageRun("paper", 5, "dpdk")); one != five || one < 10*time.Second {
		t.Errorf("about %v in one round, %v in five", one, five)
	}
}

func TestImageThatIsNone(t *testing.T) {
	if _, got := Divide(host2(), Lab{}, []experiment.Cell{imageCell("windows")}); !strings.Contains(got[imageCell("windows").String()], "choose from debian") {
		t.Errorf("%v", got)
	}
	if _, err := chain.Parse("x", chainText(host2(), imageCell("debian"))); err != nil {
		t.Error(err)
	}
}
