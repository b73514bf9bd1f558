// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
)

// measuringPrefix starts the name of the abstract socket that announces a measuring
// process. The kernel removes the socket with the process.
const measuringPrefix = "@dray-measuring/"

// AnnounceMeasurement tells other processes in this network namespace that this one
// is measuring, until end is called.
func AnnounceMeasurement() (end func(), err error) {
	// A random suffix keeps ordinary users from taking the name first.
	l, err := net.Listen("unix", ownMeasurements()+strconv.FormatUint(rand.Uint64(), 36))
	if err != nil {
		return nil, fmt.Errorf("announce a measurement: %w", err)
	}
	return func() { l.Close() }, nil
}

// OtherMeasurements counts the other processes that have announced a measurement.
func OtherMeasurements() int {
	sockets, err := os.ReadFile("/proc/self/net/unix")
	if err != nil {
		return 0 // unknown
	}
	own, others := []byte(ownMeasurements()), 0
	for _, line := range bytes.Split(sockets, []byte("\n")) {
		fields := bytes.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if name := fields[len(fields)-1]; bytes.HasPrefix(name, []byte(measuringPrefix)) && !bytes.HasPrefix(name, own) {
			others++
		}
	}
	return others
}

// ownMeasurements starts the names of this process's sockets.
func ownMeasurements() string { return measuringPrefix + strconv.Itoa(os.Getpid()) + "/" }
