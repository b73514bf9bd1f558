// SPDX-License-Identifier: Apache-2.0

package images

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// launcher is a folder with dray-fronthaul, and a program in place of dray-program that prints the settings.
func launcher(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"dray-fronthaul": string(Files("fronthaul")["dray-fronthaul"]),
		"dray-program":   "#!/bin/sh\necho \"program: $2\"\ncat \"$4\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "dray-fronthaul")
}

func TestFronthaulSettings(t *testing.T) {
	program := launcher(t)
	type cell struct {
		NetworkInterface string `yaml:"network_interface"`
		DU               string `yaml:"du_mac_addr"`
		RU               string `yaml:"ru_mac_addr"`
		T2aMinUp         int    `yaml:"t2a_min_up"`
		Bandwidth        int    `yaml:"bandwidth"`
	}
	var got struct {
		Program string
		RuOFH   struct {
			T1aMinUp int `yaml:"t1a_min_up"`
			Cells    []cell
		} `yaml:"ru_ofh"`
		CellCfg struct {
			Bandwidth int `yaml:"channel_bandwidth_MHz"`
		} `yaml:"cell_cfg"`
		RuEmu struct{ Cells []cell } `yaml:"ru_emu"`
		HAL   struct {
			EAL string `yaml:"eal_args"`
		} `yaml:"hal"`
		DPDK struct {
			EAL string `yaml:"eal_args"`
		} `yaml:"dpdk"`
	}
	read := func(args ...string) {
		t.Helper()
		out, err := exec.Command(program, args...).Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		if err := yaml.Unmarshal(out, &got); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	const eal = "--no-huge --lcores 0@0,1@1 -d /lib/x.so --vdev net_memif0,role=server,mac=02:00:00:00:00:07 --no-pci"
	read(append([]string{"du", "--bandwidth", "20", "--ru", "02:00:00:00:00:09", "--"}, strings.Fields(eal)...)...)
	read("ru", "--link", "150", "--bandwidth", "20", "--ru", "02:00:00:00:00:09", "fh")
	du, ru := got.RuOFH.Cells[0], got.RuEmu.Cells[0]
	if got.Program != "ru_emulator" || du.NetworkInterface != "net_memif0" || got.HAL.EAL != eal || ru.NetworkInterface != "fh" || got.DPDK.EAL != "" {
		t.Errorf("%+v", got)
	}
	if got.CellCfg.Bandwidth != 20 || ru.Bandwidth != 20 || du.RU != ru.RU || du.DU != ru.DU || ru.RU != "02:00:00:00:00:09" {
		t.Errorf("the ends have different settings: %+v", got)
	}
	if got.RuOFH.T1aMinUp-ru.T2aMinUp != 150 {
		t.Errorf("the windows leave %d µs to the link, want 150", got.RuOFH.T1aMinUp-ru.T2aMinUp)
	}
	for _, args := range [][]string{
		{}, {"du"}, {"cu", "fh"}, {"du", "--bandwidth", "15", "fh"}, {"ru", "--link", "501", "fh"}, {"ru", "--link", "-1", "fh"}, {"ru", "--link", "1e9", "fh"}, {"ru", "--link"},
		{"ru", "--colour", "red", "fh"}, {"ru", "--"}, {"ru", "--", "--no-huge"}, {"ru", "--vdev"},
	} {
		if out, err := exec.Command(program, args...).CombinedOutput(); err == nil || len(out) == 0 {
			t.Errorf("%v: %v, %s", args, err, out)
		}
	}
}
