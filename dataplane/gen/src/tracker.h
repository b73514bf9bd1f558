/* SPDX-License-Identifier: Apache-2.0 */
/* A receiver's statistics of one stream: loss, duplication, order, delay. */
#ifndef GEN_TRACKER_H
#define GEN_TRACKER_H

#include "histogram.h"
#include "packet.h"
#include "windows.h"

#define TRACKER_WINDOW (1u << 20) /* sequence numbers in which a duplicate is recognised */

struct tracker_counts {
	uint64_t received, received_bytes, duplicates, reordered, stale, warmup, foreign, corrupt,
		other_stream, clock_errors;
};

struct tracker {
	/* set by the user */
	/* 0: the first one to arrive; from short packets, only its low bits until a whole one
	 * arrives */
	uint32_t stream;
	bool check;	/* check payload sums as well */
	bool replies;	/* takes returning packets: replies, or unchanged data */
	bool intervals; /* keep delay_interval */

	struct windows windows;

	/* of the bulk stream that goes with the followed one; has_bulk: some of it came */
	bool has_bulk;
	uint64_t bulk_received, bulk_bytes, bulk_first_ns, bulk_last_ns;

	bool has_stream, low_stream; /* one is followed; only its low bits are known */
	struct tracker_counts counts;
	uint64_t reordered_distance_max;
	uint64_t next; /* highest sequence number + 1 */
	bool end_seen;
	uint64_t end_count; /* as reported by the sender */
	uint64_t first_ns, last_ns;
	double jitter_ns, jitter_max_ns; /* the former without what `still` leaves of it */
	uint64_t still;			 /* packets without variation since then */
	struct histogram delay, delay_intended, variation, forward, back, delay_interval;

	/* of the last packet that was measured */
	bool has_last;
	uint64_t last_sequence, last_delay;
	uint64_t flow_next[PACKET_FLOWS];
	uint64_t window[TRACKER_WINDOW / 64];
};

/* A zeroed one for that stream; NULL: no memory. Freed with free(). */
struct tracker *tracker_new(uint32_t stream);

/*
 * Take the run that these n datagrams begin with, which came at `now` (see packet_read). Returns
 * how many it has. wanted: they are draygen's, whole, and of the wanted kind, and *first is the
 * first one's header, whatever its stream.
 */
unsigned tracker_take(struct tracker *tracker, struct io_buf *bufs, unsigned n, uint64_t now,
		      struct packet *first, bool *wanted);

/* Take all of n datagrams. */
void tracker_take_all(struct tracker *tracker, struct io_buf *bufs, unsigned n, uint64_t now);

/* The jitter in ns, as RFC 3550, section 6.4.1, has it. */
double tracker_jitter(const struct tracker *tracker);

/* Packets that were sent, as far as is known. */
uint64_t tracker_expected(const struct tracker *tracker);

/* Every packet arrived that the sender reports. */
bool tracker_complete(const struct tracker *tracker);

#endif
