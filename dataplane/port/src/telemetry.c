/* SPDX-License-Identifier: Apache-2.0 */
/* Counters and latency, copied to the telemetry memfd every PERIOD_NS. */
#include "telemetry.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "egress/egress.h"
#include "lane.h"

#define PERIOD_NS 250000000u
/*
 * At least, of the packets that a queue sends: enough for the median of one period. A stamp is in a
 * cache line of its own, which delays its packet: not every packet of a slow flow has one.
 */
#define STAMPS_PER_SECOND 256
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

int telemetry_map(struct dray_port *port, int fd, uint64_t size)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	void *map;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size != size)
		return -EPROTO;
	if (seals < 0 || (seals & SEALS) != SEALS)
		return -EPERM;
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	(void)madvise(map, size, MADV_DONTFORK);
	if (port->telemetry)
		munmap(port->telemetry, port->telemetry_size);
	port->telemetry = map;
	port->telemetry_size = size;
	atomic_store_explicit(&port->telemetry->magic, TELEMETRY_MAGIC, memory_order_relaxed);
	atomic_store_explicit(&port->telemetry->version, WIRE_VERSION, memory_order_relaxed);
	atomic_store_explicit(&port->telemetry->clock, CLOCK_KIND_HERE, memory_order_relaxed);
	return 0;
}

uint64_t port_count(const struct dray_port *port, unsigned queue, unsigned which)
{
	const struct queue *q = &port->queues[queue];

	return atomic_load_explicit(&q->tx.counters.n[which], memory_order_relaxed) +
	       atomic_load_explicit(&q->rx.counters.n[which], memory_order_relaxed) +
	       atomic_load_explicit(&q->pool_counters.n[which], memory_order_relaxed);
}

static void copy_count(_Atomic uint64_t *to, const _Atomic uint64_t *from)
{
	atomic_store_explicit(to, atomic_load_explicit(from, memory_order_relaxed),
			      memory_order_relaxed);
}

static void write_block(struct dray_port *port, unsigned q)
{
	struct telemetry_block *block =
		(struct telemetry_block *)((uint8_t *)port->telemetry + LAYOUT_PAGE +
					   q * TELEMETRY_BLOCK);
	struct queue *queue = &port->queues[q];

	for (unsigned i = 0; i < COUNTERS; i++)
		atomic_store_explicit(&block->counters[i], port_count(port, q, i),
				      memory_order_relaxed);
	copy_count(&block->depth, &queue->rx.counters.depth);
	for (unsigned i = 0; i < HISTOGRAM_SIZE; i++)
		copy_count(&block->histogram[i], &queue->histogram[i]);
}

static void write_class(struct telemetry_class *to, const struct telemetry_class *from)
{
	copy_count(&to->packets, &from->packets);
	copy_count(&to->bytes, &from->bytes);
	copy_count(&to->dropped, &from->dropped);
	copy_count(&to->late, &from->late);
	copy_count(&to->marked, &from->marked);
	atomic_store_explicit(&to->queued,
			      atomic_load_explicit(&from->queued, memory_order_relaxed),
			      memory_order_relaxed);
	atomic_store_explicit(&to->queued_most,
			      atomic_load_explicit(&from->queued_most, memory_order_relaxed),
			      memory_order_relaxed);
	copy_count(&to->queued_bytes, &from->queued_bytes);
	copy_count(&to->longest_ns, &from->longest_ns);
}

/* What classes the port has, and what they have counted. */
static void write_classes(struct dray_port *port)
{
	struct egress *e = port->egress;
	struct telemetry_header *h = port->telemetry;

	if (!e)
		return;
	egress_remind(e);
	h->classes = e->scheduler->plan;
	for (unsigned i = 0; i < CLASSES_MAX; i++)
		write_class(&h->class[i], &e -> scheduler -> report[i]);
}

/*
 * One packet in so many is stamped: as the broker asks, and more often if few are sent.
 * A percentile takes a number of samples, not a share of the packets.
 */
static uint32_t sampling_period(uint32_t shift, uint64_t packets, uint64_t ns)
{
	uint64_t most = 1u << shift;
	uint64_t enough = packets * 1000000000 / ns / STAMPS_PER_SECOND;

	return (uint32_t)(enough >= most ? most : enough > 0 ? enough : 1);
}

/* The broker may change how often packets are stamped; the rate since the last time counts too. */
static void follow_sampling(struct dray_port *port, struct generation *current, uint64_t now)
{
	uint32_t shift = atomic_load_explicit(&port->telemetry->sample_shift, memory_order_relaxed);
	bool changed = shift != port->last_sample_shift || port->sampling_ns == 0;
	uint64_t elapsed = now - port->sampling_ns;

	if ((shift > SAMPLE_SHIFT_MAX && shift != SAMPLE_NONE) || (!changed && elapsed < PERIOD_NS))
		return;
	port->last_sample_shift = shift;
	port->welcome.sample_shift = shift;
	port->sampling_ns = now;
	for (unsigned q = 0; q < port->queue_count; q++) {
		uint64_t sent = port_count(port, q, COUNT_TX_PACKETS),
			 packets = sent - port->queues[q].sampled;
		uint32_t period = 0;

		if (shift != SAMPLE_NONE)
			period = changed ? 1u << shift : sampling_period(shift, packets, elapsed);
		port->queues[q].sampled = sent;
		if (current && current->kind == DRAY_LINK_SHM && q < current->queues)
			tx_lane_set_sampling((struct tx_lane *)current->tx[q], period);
	}
}

void telemetry_step(struct dray_port *port, bool now)
{
	struct generation *current = atomic_load_explicit(&port->current, memory_order_relaxed);
	struct telemetry_header *h = port->telemetry;
	uint64_t ns = clock_ns();
	uint32_t state = current ? TELEMETRY_LIVE : TELEMETRY_DOWN;

	if (!h || (!now && ns < port->telemetry_due_ns))
		return;
	port->telemetry_due_ns = ns + PERIOD_NS;
	follow_sampling(port, current, ns);
	if (port->control.state == CONTROL_LOST)
		state = TELEMETRY_LOST;
	atomic_store_explicit(&h->queues, port->queue_count, memory_order_relaxed);
	atomic_store_explicit(&h->state, state, memory_order_relaxed);
	atomic_store_explicit(&h->generation, current ? current->number : 0, memory_order_relaxed);
	atomic_store_explicit(&h->tick_hz, clock_rate_hz(&port->rate), memory_order_relaxed);
	for (unsigned q = 0; q < port->queue_count; q++)
		write_block(port, q);
	write_classes(port);
}
