/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A port with traffic classes: frames are classified, shaped and dropped by the library's queues,
 * also if the application has several queues; the statistics say so, and no mbuf is lost.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rig.h"
#include "rte_pmd_dray.h"

#define RATE 4000000u /* bit/s */
#define LENGTH 500
#define FRAME_NS (LENGTH * 8 * 1000000000ull / RATE)
#define LIMIT 100
#define URGENT 46
#define OTHER 0
#define MOST 256

static _Atomic uint64_t still_ns; /* 0: the clock goes */

/* The library's too, since that is linked into the test. */
int clock_gettime(clockid_t id, struct timespec *now)
{
	const uint64_t still = still_ns;
	int ret = (int)syscall(SYS_clock_gettime, id, now);

	if (id == CLOCK_MONOTONIC && still)
		*now = (struct timespec){.tv_sec = (time_t)(still / 1000000000),
					 .tv_nsec = (long)(still % 1000000000)};
	return ret;
}

/*
 * The clock by which frames leave stands still while they are offered: on a busy machine, most of
 * those that were offered first would have left before the others come.
 */
static void stop_clock(bool stop)
{
	still_ns = stop ? clock_ns() : 0;
}

/* Strict order: urgent, then the rest. */
static struct broker_options options(uint32_t limit)
{
	struct broker_options o = {
		.classes = {.scheduler = SCHEDULER_STRICT,
			    .classes = 2,
			    .rate = RATE,
			    .burst = 2 * LENGTH},
		.geometry = {.pkt_slots = 512, .ring_size = 512},
	};

	o.classes.class[0] = (struct wire_class){.dscp = 1ull << URGENT, .limit = LIMIT};
	o.classes.class[1] = (struct wire_class){.limit = limit};
	return o;
}

static struct broker *begin(uint16_t *a, uint16_t *b, uint32_t limit, uint16_t tx_queues)
{
	const struct broker_options o = options(limit);
	struct broker *broker = broker_start(&o);

	*a = rig_probe(broker, "net_dray0", "a", "");
	rig_start(*a, &(struct rig_conf){.tx_queues = tx_queues});
	*b = rig_open(broker, "net_dray1", "b", "");
	rig_wait_up(*a, *b);
	return broker;
}

static void end(struct broker *broker, uint16_t a, uint16_t b)
{
	rig_close(a);
	rig_close(b);
	broker_stop(broker);
}

static struct rte_ipv4_hdr *ip_of(const struct rte_mbuf *m)
{
	return rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, RTE_ETHER_HDR_LEN);
}

static struct rte_mbuf *make(struct rte_mempool *pool, uint8_t dscp)
{
	struct rte_mbuf *m = rig_make(pool, LENGTH, 1);

	rte_pktmbuf_mtod(m, struct rte_ether_hdr *)->ether_type = htons(RTE_ETHER_TYPE_IPV4);
	*ip_of(m) = (struct rte_ipv4_hdr){
		.version_ihl = 0x45,
		.type_of_service = (uint8_t)(dscp << 2),
		.total_length = htons(LENGTH - RTE_ETHER_HDR_LEN),
		.time_to_live = 1,
		.next_proto_id = IPPROTO_UDP,
	};
	return m;
}

/* n frames of a DSCP from a pool; the driver takes all. */
static void offer(uint16_t id, uint16_t queue, struct rte_mempool *pool, uint8_t dscp, unsigned n)
{
	while (n--)
		rig_send(id, queue, make(pool, dscp));
}

/* What came, in order: the DSCP of each. */
struct seen {
	uint8_t dscp[4 * MOST];
	unsigned count, urgent;
};

static unsigned receive(uint16_t id, struct seen *seen)
{
	struct rte_mbuf *m[32];
	uint16_t n = rte_eth_rx_burst(id, 0, m, 32);

	for (uint16_t i = 0; i < n; i++) {
		uint8_t dscp = ip_of(m[i])->type_of_service >> 2;

		CHECK_EQ(m[i]->pkt_len, LENGTH);
		CHECK(seen->count < sizeof(seen->dscp));
		seen->dscp[seen->count++] = dscp;
		seen->urgent += dscp == URGENT;
	}
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

static uint64_t gone(uint16_t id)
{
	struct rte_eth_stats s;

	CHECK_EQ(rte_eth_stats_get(id, &s), 0);
	return s.opackets + s.oerrors;
}

/* Until each of so many frames has left or been dropped, and what left has come. */
static void settle(uint16_t a, uint16_t b, uint64_t frames, struct seen *seen)
{
	struct rte_eth_stats s;

	UNTIL(gone(a) == frames, {
		if (receive(b, seen) == 0)
			usleep(200);
	});
	CHECK_EQ(rte_eth_stats_get(a, &s), 0);
	UNTIL(seen->count == s.opackets, receive(b, seen));
	CHECK_EQ(s.oerrors, frames - seen->count);
	CHECK_EQ(s.obytes, (uint64_t)seen->count * LENGTH);
	CHECK_EQ(rig_xstat(a, "tx_dropped"), s.oerrors);
	CHECK_EQ(rig_xstat(a, "misuse"), 0);
}

/* The last urgent frame comes before most of the others, which were sent first. */
static void check_order(const struct seen *seen, unsigned urgent)
{
	unsigned after = 0;

	CHECK_EQ(seen->urgent, urgent);
	for (unsigned i = seen->count; i > 0 && seen->dscp[i - 1] != URGENT; i--)
		after++;
	CHECK(after > LIMIT / 2);
}

static void strict(void)
{
	struct seen seen = {0};
	uint64_t began = clock_ns();
	uint16_t a, b;
	struct broker *broker = begin(&a, &b, LIMIT, 1);

	stop_clock(true);
	offer(a, 0, rig_source(), OTHER, 200);
	offer(a, 0, rig_source(), URGENT, 20);
	stop_clock(false);
	settle(a, b, 220, &seen);
	CHECK(clock_ns() - began >= (seen.count - 2ull) * FRAME_NS);
	CHECK(seen.count < 220); /* dropped */
	check_order(&seen, 20);
	CHECK_EQ(rte_eth_stats_reset(a), 0);
	CHECK_EQ(gone(a), 0);
	end(broker, a, b);
}

struct sender {
	pthread_t thread;
	uint16_t id, queue;
};

static void *send_some(void *argument)
{
	const struct sender *s = argument;

	offer(s->id, s->queue, rig_source(), s->queue ? OTHER : URGENT, s->queue ? 80 : 15);
	return NULL;
}

/* Threads that share the one queue of the port, through queues of their own. */
static void several(void)
{
	struct sender senders[4];
	struct seen seen = {0};
	uint16_t a, b;
	struct broker *broker = begin(&a, &b, LIMIT, 4);

	stop_clock(true);
	for (uint16_t i = 0; i < 4; i++) {
		senders[i] = (struct sender){.id = a, .queue = i};
		CHECK_EQ(pthread_create(&senders[i].thread, NULL, send_some, &senders[i]), 0);
	}
	for (uint16_t i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(senders[i].thread, NULL), 0);
	stop_clock(false);
	settle(a, b, 15 + 3 * 80, &seen);
	check_order(&seen, 15);
	end(broker, a, b);
}

/* n frames, of which those that the driver does not take at once are lost. Returns the others. */
static unsigned offer_once(uint16_t a, uint16_t b, struct rte_mempool *pool, uint8_t dscp,
			   unsigned n, struct seen *seen)
{
	unsigned taken = 0;

	while (n--) {
		struct rte_mbuf *m = make(pool, dscp);

		if (rte_eth_tx_burst(a, 0, &m, 1) == 1)
			taken++;
		else
			rte_pktmbuf_free(m);
		receive(b, seen);
	}
	return taken;
}

/*
 * Mbufs that are bound to buffers of the link take their share, and a long queue all others: the
 * application still gets some for a class that sends first.
 */
static void bound(void)
{
	struct seen seen = {0};
	unsigned taken;
	uint16_t a, b;
	struct broker *broker = begin(&a, &b, 1000, 1);
	struct rte_mempool *pool = rte_pmd_dray_pool_create("bound", a, MOST, 0, 0, SOCKET_ID_ANY);

	CHECK(pool != NULL);
	stop_clock(true);
	taken = offer_once(a, b, pool, OTHER, 700, &seen);
	CHECK_EQ(offer_once(a, b, pool, URGENT, 10, &seen), 10);
	stop_clock(false);
	settle(a, b, taken + 10, &seen);
	check_order(&seen, 10);
	CHECK(rig_xstat(a, "tx_zero_copy_packets") > 0);
	CHECK_EQ(rte_mempool_avail_count(pool), MOST);
	end(broker, a, b);
	rte_mempool_free(pool);
}

/* A device is closed while frames wait. */
static void closed(void)
{
	uint16_t a, b;
	struct broker *broker = begin(&a, &b, LIMIT, 1);

	offer(a, 0, rig_source(), OTHER, 50);
	end(broker, a, b);
}

int main(void)
{
	rig_begin();
	strict();
	several();
	bound();
	closed();
	rig_end();
	return 0;
}
