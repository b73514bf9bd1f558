// SPDX-License-Identifier: Apache-2.0

package live

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/drayage/dray/internal/link/broker"
)

// classDescriptions are the metrics of traffic classes.
type classDescriptions struct {
	asOrdered, sent, bytes, dropped, late, marked, queued, queuedBytes *prometheus.Desc
}

// describeClasses names the metrics; desc adds the labels of a link.
func describeClasses(desc func(name, help string, labels ...string) *prometheus.Desc) classDescriptions {
	class := func(name, help string) *prometheus.Desc {
		return desc("class_"+name, help+", reported by the function.", "port", "class")
	}
	return classDescriptions{
		asOrdered:   desc("port_classes_as_ordered", "1 if the port queues by the traffic classes that the chain orders, reported by the function.", "port"),
		sent:        class("packets_total", "Packets of a traffic class that left its queue"),
		bytes:       class("bytes_total", "Bytes of a traffic class that left its queue"),
		dropped:     class("dropped_packets_total", "Packets that the queue of a traffic class dropped, without late ones"),
		late:        class("late_packets_total", "Packets of a traffic class that were dropped because they would have missed their slot"),
		marked:      class("marked_packets_total", "Packets of a traffic class that were marked with ECN instead of being dropped"),
		queued:      class("queued_packets", "Packets that wait in the queue of a traffic class"),
		queuedBytes: class("queued_bytes", "Bytes that wait in the queue of a traffic class"),
	}
}

func (d *classDescriptions) describe(ch chan<- *prometheus.Desc) {
	for _, one := range []*prometheus.Desc{d.asOrdered, d.sent, d.bytes, d.dropped, d.late, d.marked, d.queued, d.queuedBytes} {
		ch <- one
	}
}

// collectClasses sends what an end reports of its traffic classes.
func (c *Collector) collectClasses(ch chan<- prometheus.Metric, l Link, e *broker.EndStatus) {
	if e.Classes == nil {
		return
	}
	d := &c.descs.class
	labels := append(c.chain(l.Chain), l.Status.Name, e.Function+"."+e.Port)
	ch <- prometheus.MustNewConstMetric(d.asOrdered, prometheus.GaugeValue, oneIf(e.Classes.AsOrdered), labels...)
	for _, class := range e.Classes.Classes {
		of := append(labels[:len(labels):len(labels)], class.Name)
		for _, m := range []struct {
			desc *prometheus.Desc
			kind prometheus.ValueType
			n    uint64
		}{
			{d.sent, prometheus.CounterValue, class.Sent}, {d.bytes, prometheus.CounterValue, class.SentBytes},
			{d.dropped, prometheus.CounterValue, class.Dropped}, {d.late, prometheus.CounterValue, class.Late},
			{d.marked, prometheus.CounterValue, class.Marked},
			{d.queued, prometheus.GaugeValue, uint64(class.Queued)}, {d.queuedBytes, prometheus.GaugeValue, class.QueuedBytes},
		} {
			ch <- prometheus.MustNewConstMetric(m.desc, m.kind, float64(m.n), of...)
		}
	}
}
