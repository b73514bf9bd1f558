/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What passes a port is copied to the capture memfd while there is one: whole or cut, both
 * directions, all queues; what finds no room is counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

#include "capture.h"
#include "test.h"

#define SLOTS 64u
#define SNAPLEN 200u
#define SLOT_SIZE 256u

/* A reader as it should be, of one ring. */
struct reader {
	struct capture_words *words;
	const uint8_t *slots;
	uint32_t head;
};

static uint8_t *memory;
static uint64_t ring_size, size;

static struct reader reader_of(unsigned queue, bool sent)
{
	uint8_t *ring = memory + (2 * queue + !sent) * ring_size;

	return (struct reader){.words = (struct capture_words *)ring,
			       .slots = ring + sizeof(struct capture_words)};
}

static struct wire_capture start_of(uint32_t queues)
{
	struct wire_capture c = {
		.slots = SLOTS, .slot_size = SLOT_SIZE, .snaplen = SNAPLEN, .queues = queues};

	CHECK_EQ(capture_derive(&c, &ring_size, &size), 0);
	c.size = size;
	return c;
}

/* Ask both ends' broker for a capture of "a", and wait for its answer. */
static void start(struct pair *p, uint32_t queues)
{
	struct wire_capture c = start_of(queues);
	int fd = broker_memfd(size, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);

	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(memory != MAP_FAILED);
	broker_capture(p->broker, &c, fd);
	UNTIL(broker_captured(p->broker) == 0, test_service(p->a, p->b));
}

static uint32_t waiting(const struct reader *r)
{
	return atomic_load_explicit(&r->words->tail, memory_order_acquire) - r->head;
}

static const struct capture_record *next(struct reader *r)
{
	CHECK(waiting(r) > 0 && waiting(r) <= SLOTS);
	return (const struct capture_record *)(r->slots + (r->head++ % SLOTS) * SLOT_SIZE);
}

static void done(struct reader *r)
{
	atomic_store_explicit(&r->words->head, r->head, memory_order_release);
}

static uint64_t lost(const struct reader *r)
{
	return atomic_load(&r->words->lost);
}

/* The next record is the packet of test_fill with this length and seed. */
static void expect(struct reader *r, uint32_t length, uint32_t seed)
{
	const struct capture_record *record = next(r);
	uint8_t bytes[4096];
	struct dray_pkt like = {.data = bytes, .room = sizeof(bytes)};
	uint64_t now = clock_of(CLOCK_REALTIME);

	test_fill(&like, length, seed);
	CHECK_EQ(record->length, length);
	CHECK_EQ(record->captured, length < SNAPLEN ? length : SNAPLEN);
	CHECK_EQ(memcmp(record + 1, bytes, record->captured), 0);
	CHECK(record->time <= now && now - record->time < 600000000000ull);
	CHECK_EQ(record->flags | record->reserved, 0);
	done(r);
}

static void both_directions(struct pair *p)
{
	struct reader sent = reader_of(0, true), received = reader_of(0, false);

	for (uint32_t i = 0; i < 3 * SLOTS; i++) {
		uint32_t length = 1 + i * 37 % 1500;

		test_send(p->a, 0, length, i);
		test_receive(p->b, 0, length, i);
		test_send(p->b, 0, length, i + 5000);
		test_receive(p->a, 0, length, i + 5000);
		expect(&sent, length, i);
		expect(&received, length, i + 5000);
	}
	CHECK_EQ(waiting(&sent) + waiting(&received), 0);
	CHECK_EQ(lost(&sent) + lost(&received), 0);
	sent.head = received.head = 0;
	done(&sent); /* tail is 192: a head that lags more than the ring has slots */
	test_send(p->a, 0, 100, 1);
	test_receive(p->b, 0, 100, 1);
	CHECK_EQ(lost(&sent), 1);
	CHECK_EQ(atomic_load(&sent.words->tail), 3 * SLOTS);
	sent.head = 3 * SLOTS + 1; /* a head in the future */
	done(&sent);
	test_send(p->a, 0, 100, 2);
	test_receive(p->b, 0, 100, 2);
	CHECK_EQ(lost(&sent), 2);
	sent.head = 3 * SLOTS;
	done(&sent);
	test_send(p->a, 0, 100, 3);
	test_receive(p->b, 0, 100, 3);
	expect(&sent, 100, 3);
}

/* A reader that stops: the newest are lost, and counted, and nobody waits. */
static void reader_stops(struct pair *p)
{
	struct reader sent = reader_of(0, true);
	uint64_t before = lost(&sent);

	sent.head = atomic_load(&sent.words->tail);
	for (uint32_t i = 0; i < SLOTS + 30; i++) {
		test_send(p->a, 0, 80, i);
		test_receive(p->b, 0, 80, i);
	}
	CHECK_EQ(lost(&sent) - before, 30);
	for (uint32_t i = 0; i < SLOTS; i++)
		expect(&sent, 80, i);
	CHECK_EQ(waiting(&sent), 0);
	test_send(p->a, 0, 80, 7);
	test_receive(p->b, 0, 80, 7);
	expect(&sent, 80, 7);
}

/* A burst of which only the beginning finds room, on the receiving side as well. */
static void burst_at_the_brim(struct pair *p)
{
	struct reader received = reader_of(0, false);
	uint64_t before = lost(&received);
	struct dray_pkt pkts[32];

	received.head = atomic_load(&received.words->tail);
	done(&received);
	for (unsigned round = 0; round < 3; round++) {
		CHECK_EQ(dray_tx_alloc(p->b, 0, pkts, 32, 64), 32);
		for (uint32_t i = 0; i < 32; i++)
			test_fill(&pkts[i], 64, 32 * round + i);
		CHECK_EQ(dray_tx_burst(p->b, 0, pkts, 30), 30);
		dray_release(&pkts[30], 2);
		CHECK_EQ(dray_rx_burst(p->a, 0, pkts, 32), 30);
		dray_release(pkts, 30);
	}
	CHECK_EQ(waiting(&received), SLOTS);
	CHECK_EQ(lost(&received) - before, 90 - SLOTS);
	for (uint32_t i = 0; i < SLOTS; i++)
		expect(&received, 64, 32 * (i / 30) + i % 30);
}

/* The tag beside the frame is in the record's frame, even if snaplen cuts through it. */
static void vlan(struct pair *p)
{
	struct reader sent = reader_of(0, true);
	const struct capture_record *record;
	struct dray_pkt t, r;

	sent.head = atomic_load(&sent.words->tail);
	done(&sent);
	for (uint32_t length = 12; length <= 300; length += 288) {
		CHECK_EQ(dray_tx_alloc(p->a, 0, &t, 1, 300), 1);
		test_fill(&t, length, 9);
		t.flags = DRAY_PKT_VLAN | DRAY_PKT_CSUM_NEEDED;
		t.vlan = 0x2064;
		t.meta = 77;
		CHECK_EQ(dray_tx_burst(p->a, 0, &t, 1), 1);
		UNTIL(dray_rx_burst(p->b, 0, &r, 1) == 1, );
		record = next(&sent);
		CHECK_EQ(record->flags, DRAY_PKT_CSUM_NEEDED);
		CHECK_EQ(record->meta, 77);
		/* there is no frame to put a tag in */
		CHECK_EQ(record->length, length == 12 ? 12 : 304);
		CHECK_EQ(record->captured, length == 12 ? 12 : SNAPLEN);
		CHECK_EQ(memcmp(record + 1, r.data, 12), 0);
		if (length == 300) {
			CHECK_EQ(memcmp((uint8_t *)(record + 1) + 12, "\x81\x00\x20\x64", 4), 0);
			CHECK_EQ(memcmp((uint8_t *)(record + 1) + 16, (uint8_t *)r.data + 12,
					SNAPLEN - 16),
				 0);
		}
		done(&sent);
		dray_release(&r, 1);
	}
}

/*
 * What is forwarded is copied to the other port's buffers, and captured once; what cannot be sent
 * is not captured.
 */
static void forwarded(struct pair *p)
{
	struct reader sent = reader_of(0, true), received = reader_of(0, false);
	struct dray_pkt pkt, none = {0};

	sent.head = atomic_load(&sent.words->tail);
	received.head = atomic_load(&received.words->tail);
	done(&sent);
	done(&received);
	test_send(p->b, 0, 90, 4);
	UNTIL(dray_rx_burst(p->a, 0, &pkt, 1) == 1, );
	CHECK_EQ(dray_tx_burst(p->a, 0, &pkt, 1), 1);
	test_receive(p->b, 0, 90, 4);
	expect(&received, 90, 4);
	expect(&sent, 90, 4);
	CHECK_EQ(dray_tx_alloc(p->a, 0, &pkt, 1, 64), 1);
	pkt.length = 0;
	CHECK_EQ(dray_tx_burst(p->a, 0, &pkt, 1), 1);
	CHECK_EQ(dray_tx_burst(p->a, 0, &none, 1), 1);
	CHECK_EQ(waiting(&sent) + waiting(&received), 0);
}

static void stop(struct pair *p)
{
	struct reader sent = reader_of(0, true);
	uint32_t tail;

	broker_capture(p->broker, NULL, -1);
	/* A stop has no answer: it has come when packets are no longer copied. */
	UNTIL(({
		      tail = atomic_load(&sent.words->tail);
		      sent.head = tail;
		      done(&sent);
		      test_send(p->a, 0, 64, 1);
		      test_receive(p->b, 0, 64, 1);
		      atomic_load(&sent.words->tail) == tail;
	      }),
	      test_service(p->a, p->b));
	munmap(memory, size);
}

static unsigned maps_of_memfds(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned n = 0;
	char line[512];

	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "dray-link") != NULL;
	fclose(f);
	return n;
}

/*
 * One after the other, some replacing the one before, with sides that never notice: at most one
 * stays mapped for each side until close.
 */
static void many(struct pair *p)
{
	unsigned before = maps_of_memfds();

	for (unsigned i = 0; i < 10; i++) {
		start(p, 1);
		munmap(memory, size);
		if (i & 1)
			broker_capture(p->broker, NULL, -1);
		if (i == 4)
			test_send(p->a, 0, 64, i);
	}
	test_receive(p->b, 0, 64, 4);
	UNTIL(maps_of_memfds() <= before + 2, test_service(p->a, p->b));
}

struct traffic {
	struct dray_port *from, *to;
	_Atomic bool over;
};

static void *exchange(void *argument)
{
	struct traffic *t = argument;
	struct dray_pkt p[8];

	while (!atomic_load(&t->over)) {
		unsigned n = dray_tx_alloc(t->from, 0, p, 8, 64);

		for (unsigned i = 0; i < n; i++)
			test_fill(&p[i], 64, i);
		CHECK_EQ(dray_tx_burst(t->from, 0, p, n), n);
		dray_release(p, dray_rx_burst(t->to, 0, p, 8));
	}
	return NULL;
}

/* Captures come and go under traffic; control is another thread's. */
static void under_traffic(void)
{
	struct pair p = test_pair(NULL, DRAY_MODE_BUSY, DRAY_SERVICE_THREAD);
	struct traffic t = {.from = p.a, .to = p.b};
	unsigned before = maps_of_memfds();
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, exchange, &t), 0);
	for (unsigned i = 0; i < 20; i++) {
		start(&p, 1);
		UNTIL(lost(&(struct reader){.words = (struct capture_words *)memory}) > 0,
		      usleep(100));
		if (i & 1)
			broker_capture(p.broker, NULL, -1);
		munmap(memory, size);
	}
	broker_capture(p.broker, NULL, -1);
	UNTIL(maps_of_memfds() == before, usleep(1000));
	atomic_store(&t.over, true);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	test_pair_close(&p);
}

static void across_generations(void)
{
	struct pair p = test_pair(NULL, DRAY_MODE_SLEEPING, 0);
	struct reader sent, received;

	start(&p, 1);
	sent = reader_of(0, true);
	received = reader_of(0, false);
	test_send(p.a, 0, 64, 1);
	test_receive(p.b, 0, 64, 1);
	CHECK_EQ(dray_close(p.b), 0);
	UNTIL(!test_up(p.a), test_service(p.a, NULL));
	p.b = test_open(p.broker, "b", DRAY_MODE_SLEEPING, 0);
	UNTIL(test_up(p.a) && test_up(p.b), test_service(p.a, p.b));
	test_send(p.a, 0, 64, 2);
	test_receive(p.b, 0, 64, 2);
	test_send(p.b, 0, 64, 3);
	test_receive(p.a, 0, 64, 3);
	expect(&sent, 64, 1);
	expect(&sent, 64, 2);
	expect(&received, 64, 3);
	munmap(memory, size);
	test_pair_close(&p);
}

static void several_queues(void)
{
	struct broker_options o = {.queues = 3};
	struct pair p = test_pair(&o, DRAY_MODE_BUSY, 0);

	start(&p, 3);
	for (unsigned q = 0; q < 3; q++) {
		test_send(p.a, q, 64 + q, q);
		test_receive(p.b, q, 64 + q, q);
		test_send(p.b, q, 74 + q, q);
		test_receive(p.a, q, 74 + q, q);
	}
	for (unsigned q = 0; q < 3; q++) {
		struct reader sent = reader_of(q, true), received = reader_of(q, false);

		expect(&sent, 64 + q, q);
		expect(&received, 74 + q, q);
		CHECK_EQ(waiting(&sent) + waiting(&received), 0);
	}
	munmap(memory, size);
	test_pair_close(&p);
}

/* Memory that is not as it should be is refused in the answer; the link goes on. */
static void refused(struct pair *p)
{
	const struct {
		int seals;
		uint64_t more;
		uint32_t queues;
		int error;
		bool hole;
	} cases[] = {{F_SEAL_SHRINK | F_SEAL_GROW, 0, 1, EPERM, false},
		     {F_SEAL_GROW | F_SEAL_SEAL, 0, 1, EPERM, false},
		     {F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, 4096, 1, EPROTO, false},
		     {F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, 0, 2, EINVAL, false},
		     {F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, 0, 1, EPROTO, true}};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct wire_capture c = start_of(cases[i].queues);

		int fd = broker_memfd(size + cases[i].more, cases[i].seals);

		if (cases[i].hole)
			CHECK_EQ(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8192,
					   4096),
				 0);
		broker_capture(p->broker, &c, fd);
		UNTIL(broker_captured(p->broker) == cases[i].error, test_service(p->a, p->b));
		test_send(p->a, 0, 64, i);
		test_receive(p->b, 0, 64, i);
	}
}

static bool lost_broker(struct dray_port *port)
{
	struct dray_event e;

	while (dray_events(port, &e, 1) == 1)
		if (e.type == DRAY_EVENT_BROKER_LOST)
			return true;
	return false;
}

/* A broker that welcomed the end without the feature breaks the protocol. */
static void not_agreed(void)
{
	struct broker_options o = {.features = FEATURES_KNOWN & ~(uint64_t)FEATURE_CAPTURE};
	struct pair p = test_pair(&o, DRAY_MODE_BUSY, 0);
	struct wire_capture c = start_of(1);

	broker_capture(p.broker, &c, broker_memfd(size, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
	UNTIL(lost_broker(p.a), test_service(p.a, p.b));
	test_pair_close(&p);
}

/* Without a broker nobody can stop a capture: it ends, and the link goes on. */
static void broker_goes(void)
{
	struct pair p = test_pair(NULL, DRAY_MODE_BUSY, 0);
	struct reader sent;

	start(&p, 1);
	sent = reader_of(0, true);
	broker_stop(p.broker);
	UNTIL(lost_broker(p.a), test_service(p.a, p.b));
	test_send(p.a, 0, 64, 1);
	test_receive(p.b, 0, 64, 1);
	CHECK_EQ(waiting(&sent), 0);
	munmap(memory, size);
	CHECK_EQ(dray_close(p.a), 0);
	CHECK_EQ(dray_close(p.b), 0);
}

int main(void)
{
	struct pair p = test_pair(NULL, DRAY_MODE_BUSY, 0);

	start(&p, 1);
	both_directions(&p);
	reader_stops(&p);
	burst_at_the_brim(&p);
	vlan(&p);
	forwarded(&p);
	stop(&p);
	refused(&p);
	many(&p);
	/* the packets without length and without a owner, and nothing else */
	CHECK_EQ(test_stats(p.a).misuse, 2);
	CHECK_EQ(test_stats(p.a).maps, 1);
	test_pair_close(&p);
	CHECK_EQ(maps_of_memfds(), 0);
	several_queues();
	across_generations();
	under_traffic();
	not_agreed();
	broker_goes();
	CHECK_EQ(maps_of_memfds(), 0);
	return 0;
}
