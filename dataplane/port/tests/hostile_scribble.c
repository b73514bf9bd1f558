/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer process scribbles at random over every shared word, tries to punch and truncate, and
 * floods the bells, while the victim works: it never crashes, never gets a buffer outside its
 * mapping or one that it has, and its calls return.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "port.h"
#include "rawend.h"
#include "test.h"

#define HELD 40
#define SECONDS 3

static uint64_t seed = 88172645463325252ull;

static uint64_t random64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static void kernel_attacks(struct rawend *e)
{
	CHECK(ftruncate(e->memfd, 4096) < 0 && errno == EPERM);
	CHECK(fallocate(e->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 65536) < 0 &&
	      errno == EPERM);
	CHECK(madvise(e->memory, e->offer.geometry.size, MADV_REMOVE) < 0);
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, e->memfd, 0) == MAP_FAILED);
}

/* Where the victim is: without it hardly any garbage would get past the check of the index. */
struct position {
	_Atomic uint32_t head, returned;
};

static struct position *position;

/*
 * Plausible descriptors most of the time, garbage else; indices that creep, jump, and run
 * backwards.
 */
static void scribble(const struct lane_view *v)
{
	uint64_t r = random64();
	uint32_t at = (uint32_t)(r >> 32) & (v->ring_size - 1);
	uint32_t place = r & 1 ? (uint32_t)(r >> 8) % (v->pkt_slots + 4) : (uint32_t)random64();
	uint32_t length = r & 2 ? (uint32_t)random64() % 2000 : (uint32_t)random64();
	uint64_t rest = r & 4 ? 128 | 1ull << 16 | (random64() & 0x3f) << 16 : random64();

	atomic_store(&v->ring[at].place_length, place | (uint64_t)length << 32);
	atomic_store(&v->ring[at].offset_flags_meta, rest);
	atomic_store(&v->extensions[at].stamp, random64());
	atomic_store(&v->completions[at], place);
	atomic_store(&v->words->newest.place_length, place | (uint64_t)length << 32);
	atomic_store(&v->words->newest.offset_flags_meta, rest);
	atomic_store(&v->words->newest_tail, atomic_load(&v->words->tail));
	if ((r >> 16 & 0xf) == 0)
		atomic_store(&v->words->tail,
			     atomic_load(&position->head) + (uint32_t)random64() % 64);
	if ((r >> 20 & 0xf) == 0)
		atomic_store(&v->words->returned.value,
			     atomic_load(&position->returned) + (uint32_t)random64() % 64);
	if ((r >> 24 & 0xff) == 0)
		atomic_store(&v->words->tail, (uint32_t)random64());
	if ((r >> 32 & 0xff) == 0)
		atomic_store(&v->words->returned.value, (uint32_t)random64());
	atomic_store(&v->words->receiver_bell.value, (uint32_t)random64());
	atomic_store(&v->words->sender_bell.value, (uint32_t)random64());
	v->packets[random64() % ((uint64_t)v->pkt_slots * v->pkt_stride)] ^= (uint8_t)r;
}

static void attack(const char *directory)
{
	struct rawend e = rawend_join(directory, "b");
	struct lane_view *lanes[2] = {&e.tx, &e.rx};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	kernel_attacks(&e);
	for (uint64_t i = 0;; i++) {
		scribble(lanes[i & 1]);
		if (i % 1024 == 0)
			(void)!send(e.bells[0], "junk", 1 + i / 1024 % 4,
				    MSG_DONTWAIT | MSG_NOSIGNAL);
		if (i % 4096 == 0)
			memset(e.memory, (int)i, 4096); /* the header page */
	}
}

struct victim {
	struct dray_port *port;
	struct dray_pkt held[HELD];
	unsigned n;
	uintptr_t low, high; /* where data has been */
	uint64_t sum, received;
};

static void take(struct victim *v, struct dray_pkt *p)
{
	uintptr_t data = (uintptr_t)p->data;

	CHECK(p->length > 0 && p->length <= p->room);
	for (unsigned i = 0; i < v->n; i++)
		CHECK(v->held[i].index != p->index || v->held[i].owner != p->owner);
	for (uint32_t i = 0; i < p->length; i++)
		v->sum += ((uint8_t *)p->data)[i]; /* outside the mapping are guard pages */
	v->low = data < v->low ? data : v->low;
	v->high = data + p->length > v->high ? data + p->length : v->high;
	v->held[v->n++] = *p;
	v->received++;
}

static void tell_position(struct dray_port *port)
{
	struct queue *q = &port->queues[0];

	if (q->rx.owner)
		atomic_store(&position->head, ((struct rx_lane *)q->rx.owner)->head);
	if (q->tx.owner)
		atomic_store(&position->returned, ((struct tx_lane *)q->tx.owner)->returned);
}

static void work(struct victim *v)
{
	struct dray_pkt p[32];
	unsigned n = dray_rx_burst(v->port, 0, p, HELD - v->n < 32 ? HELD - v->n : 32);

	for (unsigned i = 0; i < n; i++)
		take(v, &p[i]);
	while (v->n > HELD / 2) {
		unsigned at = (unsigned)(random64() % v->n);

		dray_release(&v->held[at], 1);
		v->held[at] = v->held[--v->n];
	}
	n = dray_tx_alloc(v->port, 0, p, 8, 64);
	for (unsigned i = 0; i < n; i++) {
		memset(p[i].data, 0x5a, 1500);
		p[i].length = 1500;
		for (unsigned j = 0; j < i; j++)
			CHECK(p[i].data != p[j].data);
	}
	CHECK_EQ(dray_tx_burst(v->port, 0, p, n), n);
	tell_position(v->port);
}

int main(void)
{
	struct broker_options o = {.geometry = {.ring_size = 64,
						.pkt_slots = 60,
						.msg_slots = 2,
						.msg_stride = 128 + 8192,
						.msg_headroom = 128}};
	struct broker *broker = broker_fork(&o);
	struct victim v = {.low = UINTPTR_MAX};
	struct dray_stats s;
	uint64_t end;
	pid_t pid;

	position = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(position != MAP_FAILED);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		attack(broker_directory(broker));
	v.port = test_open(broker, "a", DRAY_MODE_SLEEPING, 0);
	UNTIL(test_up(v.port), test_service(v.port, NULL));
	for (end = clock_ns() + SECONDS * 1000000000ull; clock_ns() < end;) {
		for (unsigned i = 0; i < 100; i++)
			work(&v);
		CHECK(dray_service(v.port) >= 0);
		CHECK(dray_wait(v.port, 0, DRAY_WAIT_RX, 1) >= 0);
	}
	CHECK_EQ(waitpid(pid, NULL, WNOHANG), 0); /* it did not fail at its own checks */
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	s = test_stats(v.port);
	fprintf(stderr, "received %llu", (unsigned long long)v.received);
	for (unsigned i = 0; i < DRAY_VIOLATIONS; i++)
		fprintf(stderr, " %u:%llu", i, (unsigned long long)s.violations[i]);
	fprintf(stderr, "\n");
	for (unsigned i = 0; i <= DRAY_BAD_RETURN_FORGED; i++)
		CHECK(s.violations[i] > 0);
	CHECK(s.violations[DRAY_BAD_BELL] > 0);
	CHECK(v.received > 0);
	CHECK_EQ(s.misuse, 0);
	CHECK(v.high - v.low < 4u << 20);
	dray_release(v.held, v.n);
	CHECK_EQ(dray_close(v.port), 0);
	broker_stop(broker);
	return 0;
}
