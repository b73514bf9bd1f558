/* SPDX-License-Identifier: Apache-2.0 */
/* Changes put into effect on mbufs: growing, shrinking, and what has no room. */
#include <rte_eal.h>
#include <rte_mbuf.h>

#include "files.h"
#include "work.h"

#define DATA 100u

static struct rte_mempool *pool;

static struct rte_mbuf *make(uint16_t headroom)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *data;

	CHECK(m != NULL);
	m->data_off = headroom;
	data = (uint8_t *)rte_pktmbuf_append(m, DATA);
	CHECK(data != NULL);
	for (unsigned i = 0; i < DATA; i++)
		data[i] = (uint8_t)i;
	m->ol_flags = RTE_MBUF_F_RX_RSS_HASH | RTE_MBUF_F_RX_VLAN;
	return m;
}

/* push bytes of 0xee, then keep bytes counting up from strip. */
static void check_applied(uint16_t headroom, uint16_t push, uint16_t strip, uint32_t keep)
{
	struct change c = {.push = push, .strip = strip, .keep = keep};
	struct rte_mbuf *m = make(headroom);
	const uint8_t *data;

	memset(c.front, 0xee, sizeof(c.front));
	CHECK_EQ(work_apply(m, &c), PASS);
	CHECK_EQ(m->pkt_len, push + keep);
	CHECK_EQ(m->data_len, push + keep);
	data = rte_pktmbuf_mtod(m, const uint8_t *);
	for (unsigned i = 0; i < push; i++)
		CHECK_EQ(data[i], 0xee);
	for (unsigned i = 0; i < keep; i++)
		CHECK_EQ(data[push + i], strip + i);
	CHECK(m->ol_flags == 0);
	rte_pktmbuf_free(m);
}

static void test_no_headroom(void)
{
	struct change c = {.push = 50, .strip = 20, .keep = 80};
	struct rte_mbuf *m = make(29);

	CHECK_EQ(work_apply(m, &c), DROP_HEADROOM);
	CHECK_EQ(m->pkt_len, DATA);
	rte_pktmbuf_free(m);
	check_applied(30, 50, 20, 80);
}

int main(int argc, char **argv)
{
	CHECK(rte_eal_init(argc, argv) >= 0);
	pool = rte_pktmbuf_pool_create("test", 63, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	CHECK(pool != NULL);
	check_applied(128, 14, 14, 86);
	check_applied(128, 66, 42, 58);
	check_applied(128, 42, 66, 34);
	check_applied(128, 42, 66, 10); /* padding goes */
	check_applied(128, 56, 50, 0);
	check_applied(128, 20, 100, 0);
	check_applied(0, 14, 14, 86);
	test_no_headroom();
	CHECK_EQ(rte_mempool_avail_count(pool), 63);
	rte_eal_cleanup();
	return 0;
}
