/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What device arguments and offloads change: copying, scattering, VLAN tags, and what is refused.
 */
#include <errno.h>
#include <rte_bus_vdev.h>

#include "rig.h"

static struct broker *broker;

static void refused(void)
{
	static const char *const wrong[] = {"",
					    "port=",
					    "port=a,port=b",
					    "port=a,colour=red",
					    "port=a,rx=fast",
					    "port=a,rx-copy-max=x",
					    "port=a,rx-copy-max=-1",
					    "port=a,rx-copy-max=70000",
					    "port=a,rx-hold=999999",
					    "port=namelongerthan15characters",
					    "port=no/name",
					    "port=absent,dir=/nonexistent"};

	rig_refuse("net_dray9", wrong, RTE_DIM(wrong));
}

/* Where the data of a received mbuf is. */
static bool attached(uint16_t from, uint16_t to, uint32_t length)
{
	struct rte_mbuf *m;
	bool is;

	rig_send(from, 0, rig_make(rig_source(), length, length));
	m = rig_receive(to, 0);
	rig_check(m, length, length);
	is = RTE_MBUF_HAS_EXTBUF(m);
	CHECK(is || rte_pktmbuf_headroom(m) == RTE_PKTMBUF_HEADROOM);
	rte_pktmbuf_free(m);
	return is;
}

static void copying(void)
{
	uint16_t a = rig_open(broker, "net_dray0", "a", ",rx=copy"),
		 b = rig_open(broker, "net_dray1", "b", ",rx-copy-max=100,rx-hold=8");

	rig_wait_up(a, b);
	CHECK(!attached(b, a, 64) && !attached(b, a, 1518));
	CHECK(!attached(a, b, 64) && !attached(a, b, 100) && attached(a, b, 101) &&
	      attached(a, b, 1518));
	rig_close(a);
	rig_close(b);
	a = rig_open(broker, "net_dray0", "a", ",rx=copy,rx-copy-max=0");
	b = rig_open(broker, "net_dray1", "b", ",rx-hold=0");
	rig_wait_up(a, b);
	CHECK(!attached(a, b, 1518) && !attached(b, a, 1518));
	rig_close(a);
	rig_close(b);
}

/* Mbufs that are smaller than frames: refused, unless the frame may be scattered over several. */
static void scattering(void)
{
	struct rte_mempool *small = rte_pktmbuf_pool_create(
		"small", 63, 0, 0, RTE_PKTMBUF_HEADROOM + 200, SOCKET_ID_ANY);
	uint16_t a = rig_open(broker, "net_dray0", "a", ""),
		 b = rig_probe(broker, "net_dray1", "b", ",rx=copy");
	struct rte_mbuf *m, *taken[62];

	CHECK(small != NULL);
	rte_log_set_global_level(RTE_LOG_CRIT);
	CHECK_EQ(rig_try_start(b, &(struct rig_conf){.pool = small}), -EINVAL);
	rte_log_set_global_level(RTE_LOG_NOTICE);
	rig_start(b, &(struct rig_conf){.pool = small, .rx_offloads = RTE_ETH_RX_OFFLOAD_SCATTER});
	rig_wait_up(a, b);
	for (uint32_t length = 150; length <= 1518; length += 76) {
		rig_send(a, 0, rig_make(rig_source(), length, length));
		m = rig_receive(b, 0);
		CHECK_EQ(m->nb_segs, (length + 199) / 200);
		rig_check(m, length, length);
		rte_pktmbuf_free(m);
	}
	/* The first mbuf is there, the others are not. */
	CHECK_EQ(rte_mempool_get_bulk(small, (void **)taken, 62), 0);
	rig_send(a, 0, rig_make(rig_source(), 1000, 1));
	rig_send(a, 0, rig_make(rig_source(), 100, 2));
	m = rig_receive(b, 0);
	rig_check(m, 100, 2);
	rte_pktmbuf_free(m);
	rte_mempool_put_bulk(small, (void **)taken, 62);
	CHECK_EQ(rte_mempool_avail_count(small), 63);
	rig_close(a);
	rig_close(b);
	rte_mempool_free(small);
}

static struct rte_mbuf *tagged(uint32_t length)
{
	struct rte_mbuf *m = rig_make(rig_source(), length, 1);

	m->vlan_tci = 0x2123;
	m->ol_flags |= RTE_MBUF_F_TX_VLAN;
	return m;
}

/* A tag that the sender has beside the frame stays there, or is put into it. */
static void tags(uint32_t length)
{
	static const uint8_t tag[] = {0x81, 0x00, 0x21, 0x23};
	uint16_t a = rig_probe(broker, "net_dray0", "a", ""),
		 b = rig_probe(broker, "net_dray1", "b", "");
	struct rte_mbuf *m, *plain;

	rig_start(a, &(struct rig_conf){.tx_offloads = RTE_ETH_TX_OFFLOAD_VLAN_INSERT});
	rig_start(b, &(struct rig_conf){0});
	rig_wait_up(a, b);
	plain = rig_make(rig_source(), length, 1);
	rig_send(a, 0, tagged(length));
	m = rig_receive(b, 0);
	CHECK_EQ(m->pkt_len, length + 4);
	CHECK_EQ(m->vlan_tci, 0x2123);
	CHECK_EQ(m->ol_flags & (RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED),
		 RTE_MBUF_F_RX_VLAN);
	CHECK(!memcmp(rte_pktmbuf_mtod(m, void *), rte_pktmbuf_mtod(plain, void *), 12));
	CHECK(!memcmp(rte_pktmbuf_mtod_offset(m, void *, 12), tag, 4));
	CHECK(!memcmp(rte_pktmbuf_mtod_offset(m, void *, 16),
		      rte_pktmbuf_mtod_offset(plain, void *, 12), length - 12));
	rte_pktmbuf_free(m);
	CHECK_EQ(rte_eth_dev_stop(b), 0);
	rig_start(b, &(struct rig_conf){.rx_offloads = RTE_ETH_RX_OFFLOAD_VLAN_STRIP});
	rig_send(a, 0, tagged(length));
	m = rig_receive(b, 0);
	rig_check(m, length, 1);
	CHECK(m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED);
	CHECK_EQ(m->vlan_tci, 0x2123);
	rte_pktmbuf_free(m);
	rte_pktmbuf_free(plain);
	rig_close(a);
	rig_close(b);
}

int main(void)
{
	broker = broker_start(NULL);
	rig_begin();
	refused();
	copying();
	scattering();
	tags(60);
	tags(1000);
	broker_stop(broker);
	rig_end();
	return 0;
}
