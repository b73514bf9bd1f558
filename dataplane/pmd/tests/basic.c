/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of all lengths pass in both directions, in one piece or in several, in place or copied;
 * what cannot pass is counted; no mbuf is lost.
 */
#include <errno.h>

#include "rig.h"

static uint16_t a, b;

static struct rte_eth_stats stats_of(uint16_t id)
{
	struct rte_eth_stats s;

	CHECK_EQ(rte_eth_stats_get(id, &s), 0);
	return s;
}

static void lengths(void)
{
	struct rte_eth_stats before = stats_of(b), after;
	uint64_t in_place = rig_xstat(b, "rx_zero_copy_packets"), bytes = 0;
	uint32_t n = 0;

	for (uint32_t length = 1; length <= 1518; length += length < 300 ? 1 : 61, n++) {
		rig_pass(a, b, length, length);
		rig_pass(b, a, length, length + 7);
		bytes += length;
	}
	after = stats_of(b);
	CHECK_EQ(after.ipackets - before.ipackets, n);
	CHECK_EQ(after.ibytes - before.ibytes, bytes);
	CHECK_EQ(after.opackets - before.opackets, n);
	CHECK_EQ(after.q_ipackets[0] - before.q_ipackets[0], n);
	CHECK_EQ(after.ierrors + after.oerrors + after.imissed + after.rx_nombuf, 0);
	CHECK(rig_xstat(b, "rx_zero_copy_packets") > in_place);
}

/* More than a ring takes: the rest is refused, and goes when there is room. */
static void bursts(void)
{
	struct rte_mbuf *m[400], *r[64];
	uint32_t sent = 0, got = 0;

	for (uint32_t i = 0; i < 400; i++)
		m[i] = rig_make(rig_source(), 60 + i, i);
	UNTIL(got == 400, {
		uint16_t n = rte_eth_rx_burst(b, 0, r, 64);

		for (uint16_t i = 0; i < n; i++, got++) {
			rig_check(r[i], 60 + got, got);
			rte_pktmbuf_free(r[i]);
		}
		if (n == 0)
			sent += rte_eth_tx_burst(a, 0, &m[sent], (uint16_t)(400 - sent));
	});
	CHECK_EQ(sent, 400);
}

static void in_pieces(void)
{
	struct rte_mbuf *m = rig_make(rig_source(), 700, 5),
			*second = rte_pktmbuf_alloc(rig_source()), *r;

	/* The second half to an mbuf of its own. */
	memcpy(rte_pktmbuf_append(second, 350), rte_pktmbuf_mtod_offset(m, void *, 350), 350);
	CHECK_EQ(rte_pktmbuf_trim(m, 350), 0);
	CHECK_EQ(rte_pktmbuf_chain(m, second), 0);
	rig_send(a, 0, m);
	r = rig_receive(b, 0);
	rig_check(r, 700, 5);
	rte_pktmbuf_free(r);
}

/* An mbuf that somebody else has as well, and one that is attached to another. */
static void shared(void)
{
	struct rte_mbuf *m = rig_make(rig_source(), 500, 9),
			*clone = rte_pktmbuf_clone(m, rig_source()), *r;

	CHECK(clone != NULL);
	rte_pktmbuf_refcnt_update(m, 1);
	rig_send(a, 0, m);
	rig_send(a, 0, clone);
	for (unsigned int i = 0; i < 2; i++) {
		r = rig_receive(b, 0);
		rig_check(r, 500, 9);
		rte_pktmbuf_free(r);
	}
	rte_pktmbuf_free(m);
}

static void refused(void)
{
	struct rte_mbuf *m[3] = {rte_pktmbuf_alloc(rig_source()), rig_make(rig_source(), 2000, 1),
				 rig_make(rig_source(), 100, 2)},
			*r;
	struct rte_eth_stats before = stats_of(a);

	CHECK_EQ(rte_eth_tx_burst(a, 0, m, 3), 3);
	r = rig_receive(b, 0);
	rig_check(r, 100, 2);
	rte_pktmbuf_free(r);
	CHECK_EQ(stats_of(a).oerrors - before.oerrors, 2);
	CHECK_EQ(rig_xstat(a, "tx_too_long_errors"), 2);
	CHECK_EQ(stats_of(a).opackets - before.opackets, 1);
}

/* What there is no mbuf for waits, and comes later. */
static void without_mbufs(void)
{
	struct rte_mbuf *taken[RIG_MBUFS], *m, *r[8];

	for (uint32_t i = 0; i < 6; i++)
		rig_send(a, 0, rig_make(rig_source(), 100 + i, i));
	CHECK_EQ(rte_mempool_get_bulk(rig_pool(b), (void **)taken, RIG_MBUFS), 0);
	UNTIL(stats_of(b).rx_nombuf > 0, CHECK_EQ(rte_eth_rx_burst(b, 0, r, 8), 0));
	CHECK_EQ(rte_eth_rx_burst(b, 0, r, 2), 0); /* fewer than wait */
	rte_mempool_put_bulk(rig_pool(b), (void **)taken, 4);
	for (uint32_t i = 0; i < 4; i++) {
		m = rig_receive(b, 0);
		rig_check(m, 100 + i, i);
		taken[i] = m;
	}
	CHECK_EQ(rte_eth_rx_burst(b, 0, r, 8), 0);
	for (uint32_t i = 0; i < 4; i++)
		rte_pktmbuf_free(taken[i]);
	rte_mempool_put_bulk(rig_pool(b), (void **)&taken[4], RIG_MBUFS - 4);
	for (uint32_t i = 4; i < 6; i++) {
		m = rig_receive(b, 0);
		rig_check(m, 100 + i, i);
		rte_pktmbuf_free(m);
	}
}

static void device(void)
{
	struct rte_ether_addr mac;
	struct rte_eth_dev_info info;
	struct rte_eth_burst_mode mode;

	CHECK_EQ(rte_eth_macaddr_get(a, &mac), 0);
	CHECK_EQ(mac.addr_bytes[5], 'a');
	CHECK_EQ(rte_eth_dev_info_get(a, &info), 0);
	CHECK(!strcmp(info.driver_name, "net_dray"));
	CHECK_EQ(info.max_mtu, 1500);
	CHECK_EQ(rte_eth_dev_set_mtu(a, 1400), 0);
	CHECK_EQ(rte_eth_dev_set_mtu(a, 1501), -EINVAL);
	CHECK_EQ(rte_eth_promiscuous_disable(a), 0);
	CHECK_EQ(rte_eth_promiscuous_enable(a), 0);
	CHECK_EQ(rte_eth_rx_burst_mode_get(b, 0, &mode), 0);
	CHECK(!strncmp(mode.info, "Zero copy", 9));
	CHECK_EQ(rte_eth_stats_reset(b), 0);
	CHECK_EQ(stats_of(b).ipackets, 0);
	CHECK_EQ(rte_eth_xstats_reset(b), 0);
	CHECK_EQ(rig_xstat(b, "rx_zero_copy_packets"), 0);
	CHECK_EQ(rig_xstat(b, "broker_connected"), 1);
}

/* Started again, the link is still there. */
static void restarted(void)
{
	uint64_t generation = rig_xstat(b, "generation");

	CHECK_EQ(rte_eth_dev_stop(b), 0);
	rig_start(b, &(struct rig_conf){0});
	rig_pass(a, b, 900, 77);
	CHECK_EQ(rig_xstat(b, "generation"), generation);
}

int main(void)
{
	struct broker *broker = rig_begin_pair(&a, &b, "");

	lengths();
	bursts();
	in_pieces();
	shared();
	refused();
	without_mbufs();
	device();
	restarted();
	CHECK_EQ(rig_xstat(a, "misuse") + rig_xstat(b, "misuse"), 0);
	rig_close(a);
	UNTIL(!rig_up(b), usleep(200));
	rig_close(b);
	rig_end_pair(broker);
	return 0;
}
