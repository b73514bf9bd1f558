/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer that forges descriptors and completions: each frame is handed out once, each buffer is
 * lent once, and all that is wrong is counted.
 */
#include "rawend.h"
#include "rig.h"
#include "rte_pmd_dray.h"

#define LONG 1000
#define MBUFS 63

static struct rawend peer;
static uint32_t tail, returned;

static void publish(uint32_t slot, uint32_t length, uint32_t offset, uint32_t flags)
{
	struct descriptor *d = &peer.tx.ring[tail++ & (peer.tx.ring_size - 1)];

	atomic_store(&d->place_length, slot | (uint64_t)length << 32);
	atomic_store(&d->offset_flags_meta, offset | (uint64_t)flags << 16);
	atomic_store_explicit(&peer.tx.words->tail, tail, memory_order_release);
}

static void complete(uint32_t place)
{
	atomic_store(&peer.rx.completions[returned++ & (peer.rx.ring_size - 1)], place);
	atomic_store_explicit(&peer.rx.words->returned.value, returned, memory_order_release);
}

/* The same slot again and again, while the application has it: it gets it once. */
static void doubles(uint16_t a)
{
	struct rte_mbuf *m, *none[32];

	publish(5, LONG, 128, DESC_END);
	m = rig_receive(a, 0);
	CHECK(RTE_MBUF_HAS_EXTBUF(m));
	for (unsigned int i = 0; i < 100; i++) {
		publish(5, LONG, 128 + i, DESC_END);
		CHECK_EQ(rte_eth_rx_burst(a, 0, none, 32), 0);
	}
	CHECK_EQ(rig_xstat(a, "violation_double"), 100);
	rte_pktmbuf_free(m);
	UNTIL(rig_xstat(a, "held_buffers") == 0, CHECK_EQ(rte_eth_rx_burst(a, 0, none, 32), 0));
	publish(5, LONG, 128, DESC_END);
	rte_pktmbuf_free(rig_receive(a, 0));
}

static void bounds(uint16_t a)
{
	const uint32_t stride = peer.tx.pkt_stride;
	struct rte_mbuf *m, *none[32];

	publish(1, 0, 128, DESC_END);
	publish(1, stride, 128, DESC_END);
	publish(1, UINT32_MAX, 0, DESC_END);
	publish(1, 1, UINT16_MAX, DESC_END);
	publish(1, LONG, 128, 0);
	publish(peer.tx.pkt_slots, LONG, 128, DESC_END);
	publish(0xffffff, LONG, 128, DESC_END);
	CHECK_EQ(rte_eth_rx_burst(a, 0, none, 32), 0);
	CHECK_EQ(rig_xstat(a, "violation_bounds"), 4);
	CHECK_EQ(rig_xstat(a, "violation_flags"), 1);
	CHECK_EQ(rig_xstat(a, "violation_slot"), 2);
	/* At the very edges of a slot; without any headroom. */
	publish(1, stride, 0, DESC_END);
	m = rig_receive(a, 0);
	CHECK_EQ(m->pkt_len, stride);
	CHECK_EQ(rte_pktmbuf_headroom(m), 0);
	CHECK(rte_pktmbuf_prepend(m, 1) == NULL);
	CHECK_EQ(rte_pktmbuf_tailroom(m), 0);
	rte_pktmbuf_free(m);
	publish(2, 1, stride - 1, DESC_END);
	rte_pktmbuf_free(rig_receive(a, 0));
}

/* A tail that is out of range stops reception, and nothing else. */
static void wild_tail(uint16_t a)
{
	struct rte_mbuf *none;

	atomic_store(&peer.tx.words->tail, tail + 1000000);
	CHECK_EQ(rte_eth_rx_burst(a, 0, &none, 1), 0);
	CHECK_EQ(rig_xstat(a, "violation_ring_index"), 1);
	atomic_store(&peer.tx.words->tail, tail);
	publish(7, 64, 128, DESC_END);
	rte_pktmbuf_free(rig_receive(a, 0));
}

/* The tag beside the frame, if there is no room to put it in. */
static void tag_without_room(uint16_t a)
{
	struct rte_mbuf *m;

	atomic_store(&peer.tx.extensions[tail & (peer.tx.ring_size - 1)].hash_vlan, 77ull << 32);
	publish(9, LONG, 0, DESC_END | DESC_VLAN);
	m = rig_receive(a, 0);
	CHECK_EQ(m->pkt_len, LONG);
	CHECK(m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED);
	CHECK_EQ(m->vlan_tci, 77);
	rte_pktmbuf_free(m);
}

/*
 * Everything at random, even if only the driver writes. No sanitizer may find anything, and no
 * mbuf may be lost.
 */
static void noise(uint16_t a)
{
	struct rte_mbuf *m[32];
	uint64_t x = 88172645463325252ull;

	for (unsigned int round = 0; round < 20000; round++) {
		uint16_t n;

		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		publish((uint32_t)(x % 160), (uint32_t)(x >> 20) % 2500, (uint32_t)(x >> 40) % 1800,
			(uint32_t)(x >> 8) & 0x3f);
		complete((uint32_t)(x >> 30) % 200);
		if (x % 97 == 0)
			complete((uint32_t)x);
		n = rte_eth_rx_burst(a, 0, m, 32);
		for (uint16_t i = 0; i < n; i++) {
			uint8_t sum = 0;

			for (uint32_t k = 0; k < m[i]->data_len; k++)
				sum ^= rte_pktmbuf_mtod(m[i], uint8_t *)[k];
			rte_pktmbuf_mtod(m[i], uint8_t *)[0] = sum;
			if (x % 3 == 0 && rte_eth_tx_burst(a, 0, &m[i], 1) == 1)
				continue;
			rte_pktmbuf_free(m[i]);
		}
	}
	CHECK_EQ(rig_xstat(a, "misuse"), 0);
}

/* Completions of buffers that are with an mbuf, or with nobody: none is lent a second time. */
static void forged_returns(uint16_t a)
{
	struct rte_mempool *pool = rte_pmd_dray_pool_create("bound", a, MBUFS, 0, 0, SOCKET_ID_ANY);
	struct rte_mbuf *m[MBUFS];

	CHECK(pool != NULL);
	for (unsigned int round = 0; round < 200; round++) {
		CHECK_EQ(rte_pktmbuf_alloc_bulk(pool, m, MBUFS), 0);
		for (unsigned int i = 0; i < MBUFS; i++) {
			for (unsigned int k = 0; k < i; k++)
				CHECK(m[i]->buf_addr != m[k]->buf_addr);
			memset(rte_pktmbuf_append(m[i], 64), 0, 64);
		}
		for (unsigned int i = 0; i < MBUFS; i++)
			if (rte_eth_tx_burst(a, 0, &m[i], 1) == 0)
				rte_pktmbuf_free(m[i]);
		/*
		 * No more than the ring takes until the sender looks again, which it does when it
		 * has no buffer left.
		 */
		for (uint32_t i = 0; i < 32; i++)
			complete((round * 32 + i) % peer.rx.pkt_slots);
	}
	CHECK(rig_xstat(a, "violation_return_forged") > 0);
	CHECK(rig_xstat(a, "tx_zero_copy_packets") > 0);
	CHECK_EQ(rte_mempool_avail_count(pool), MBUFS);
	rte_mempool_free(pool);
}

int main(void)
{
	struct broker_options options = {.sample_shift = SAMPLE_NONE};
	struct broker *broker = broker_start(&options);
	uint16_t a;

	rig_begin();
	a = rig_open(broker, "net_dray0", "a", "");
	peer = rawend_join(broker_directory(broker), "b");
	UNTIL(rig_up(a), usleep(200));
	doubles(a);
	bounds(a);
	wild_tail(a);
	tag_without_room(a);
	forged_returns(a);
	noise(a);
	rawend_leave(&peer);
	UNTIL(!rig_up(a), usleep(200));
	rig_close(a);
	broker_stop(broker);
	rig_end();
	return 0;
}
