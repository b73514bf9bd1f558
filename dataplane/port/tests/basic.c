/* SPDX-License-Identifier: Apache-2.0 */
/* Packets in both directions keep content, order, and all that travels beside them. */
#include <errno.h>
#include <sys/wait.h>

#include "port.h"
#include "test.h"

#define PACKETS 5000
#define BURST 32

static unsigned send_some(struct dray_port *port, uint32_t *next)
{
	struct dray_pkt p[BURST];
	unsigned n = dray_tx_alloc(port, 0, p, BURST, 1500);

	for (unsigned i = 0; i < n; i++) {
		test_fill(&p[i], 60 + (*next + i) % 1440, *next + i);
		p[i].meta = ~(*next + i);
	}
	CHECK_EQ(dray_tx_burst(port, 0, p, n), n);
	*next += n;
	return n;
}

static unsigned receive_some(struct dray_port *port, uint32_t *next)
{
	struct dray_pkt p[BURST];
	unsigned n = dray_rx_burst(port, 0, p, BURST);

	for (unsigned i = 0; i < n; i++, (*next)++) {
		test_check(&p[i], 60 + *next % 1440, *next);
		CHECK_EQ(p[i].meta, ~*next);
		CHECK(p[i].headroom >= DRAY_MIN_HEADROOM);
	}
	dray_release(p, n);
	return n;
}

static void both_ways(struct pair *p)
{
	uint32_t sent[2] = {0}, received[2] = {0};

	UNTIL(received[0] >= PACKETS && received[1] >= PACKETS, {
		if (sent[0] < PACKETS)
			send_some(p->a, &sent[0]);
		if (sent[1] < PACKETS)
			send_some(p->b, &sent[1]);
		receive_some(p->b, &received[0]);
		receive_some(p->a, &received[1]);
	});
	CHECK_EQ(received[0], sent[0]);
	CHECK_EQ(received[1], sent[1]);
	CHECK_EQ(test_stats(p->a).tx_packets, sent[0]);
	CHECK_EQ(test_stats(p->b).rx_packets, sent[0]);
	CHECK_EQ(test_stats(p->a).tx_bytes, test_stats(p->b).rx_bytes);
}

static void beside(struct pair *p)
{
	struct dray_pkt t, r;

	CHECK_EQ(dray_tx_alloc(p->a, 0, &t, 1, 64), 1);
	test_fill(&t, 64, 7);
	t.flags = DRAY_PKT_VLAN | DRAY_PKT_HASH | DRAY_PKT_CSUM_GOOD;
	t.vlan = 0x2123;
	t.hash = 0xdeadbeef;
	CHECK(dray_pkt_push(&t, 14) != NULL);
	memset(t.data, 0xee, 14);
	CHECK_EQ(dray_tx_burst(p->a, 0, &t, 1), 1);
	UNTIL(dray_rx_burst(p->b, 0, &r, 1) == 1, );
	CHECK_EQ(r.length, 78);
	CHECK_EQ(r.flags, DRAY_PKT_VLAN | DRAY_PKT_HASH | DRAY_PKT_CSUM_GOOD);
	CHECK_EQ(r.vlan, 0x2123);
	CHECK_EQ(r.hash, 0xdeadbeef);
	CHECK_EQ(((uint8_t *)r.data)[13], 0xee);
	CHECK(dray_pkt_pull(&r, 14) != NULL);
	test_check(&r, 64, 7);
	dray_release(&r, 1);
}

static void misuse(struct pair *p)
{
	struct dray_pkt t, copy;

	CHECK_EQ(dray_tx_alloc(p->a, 0, &t, 1, 64), 1);
	t.length = t.room + 1;
	CHECK_EQ(dray_tx_burst(p->a, 0, &t, 1), 1);
	CHECK_EQ(test_stats(p->a).misuse, 1);
	CHECK_EQ(dray_tx_alloc(p->a, 0, &t, 1, 64), 1);
	t.data = (uint8_t *)t.data - t.headroom - 1; /* in the buffer before it, or before all */
	t.length = 64;
	CHECK_EQ(dray_tx_burst(p->a, 0, &t, 1), 1);
	CHECK_EQ(test_stats(p->a).misuse, 2);
	CHECK_EQ(dray_tx_alloc(p->a, 0, &t, 1, 64), 1);
	copy = t;
	dray_release(&t, 1);
	dray_release(&copy, 1);
	CHECK_EQ(test_stats(p->a).misuse, 3);
	CHECK_EQ(test_stats(p->a).held, 0);
	CHECK_EQ(dray_rx_burst(p->b, 0, &t, 1), 0);
}

/* Sent twice; released twice after reception; two threads in one side. */
static void doubled(struct pair *p)
{
	struct dray_pkt t, r, copy;

	CHECK_EQ(dray_tx_alloc(p->a, 0, &t, 1, 64), 1);
	test_fill(&t, 64, 1);
	CHECK_EQ(dray_tx_burst(p->a, 0, &t, 1), 1);
	CHECK_EQ(dray_tx_burst(p->a, 0, &t, 1), 1);
	CHECK_EQ(test_stats(p->a).misuse, 4);
	CHECK_EQ(dray_rx_burst(p->b, 0, &r, 1), 1);
	CHECK_EQ(dray_rx_burst(p->b, 0, &copy, 1), 0);
	copy = r;
	dray_release(&r, 1);
	dray_release(&copy, 1);
	CHECK_EQ(test_stats(p->b).misuse, 1);
	CHECK_EQ(test_stats(p->b).held, 0);
	test_send(p->a, 0, 64, 2);
	atomic_store(&p->b->queues[0].rx.busy, 1); /* as while another thread is in it */
	CHECK_EQ(dray_rx_burst(p->b, 0, &r, 1), 0);
	CHECK_EQ(test_stats(p->b).misuse, 2);
	atomic_store(&p->b->queues[0].rx.busy, 0);
	test_receive(p->b, 0, 64, 2);
}

/* A child of fork has no port. */
static void forked(struct pair *p)
{
	struct dray_pkt t;
	int status;
	pid_t pid;

	test_send(p->a, 0, 64, 3);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK_EQ(dray_rx_burst(p->b, 0, &t, 1), 0);
		CHECK_EQ(dray_tx_alloc(p->b, 0, &t, 1, 64), 0);
		CHECK_EQ(dray_service(p->b), -EBADF);
		CHECK_EQ(dray_close(p->b), -EBADF);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	test_receive(p->b, 0, 64, 3);
}

int main(void)
{
	struct pair p = test_pair(NULL, DRAY_MODE_BUSY, 0);
	struct dray_info info = {.size = sizeof(info)};
	struct dray_stats s;

	CHECK_EQ(dray_info(p.a, &info), 0);
	CHECK(strcmp(info.name, "a") == 0 && info.mtu == 1500 && info.mac[5] == 'a' &&
	      info.ip4[3] == 1);
	CHECK_EQ(info.kind, DRAY_LINK_SHM);
	both_ways(&p);
	beside(&p);
	misuse(&p);
	doubled(&p);
	forked(&p);
	s = test_stats(p.b);
	for (unsigned i = 0; i < DRAY_VIOLATIONS; i++)
		CHECK_EQ(s.violations[i], 0);
	CHECK(s.stamps > 0);
	test_pair_close(&p);
	return 0;
}
