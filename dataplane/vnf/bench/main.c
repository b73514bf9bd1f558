/* SPDX-License-Identifier: Apache-2.0 */
/* dray-vnf-probe: cycles per packet of each function between rings of the same process. The bench interleaves and judges them. */
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ring.h>

#include "frames.h"
#include "numbers.h"
#include "work.h"

#define BURST 32u

struct variant {
	const char *name;
	unsigned in;
	const char *arguments[6];
	struct program program;
	struct counters counters;
	struct worker worker;
	struct frame *frames;
};

static struct variant variants[] = {
	{.name = "none", .arguments = {"none"}},
	{.name = "l2fwd", .arguments = {"l2fwd"}},
	{.name = "l3fwd, 1 route", .arguments = {"l3fwd", "--generate", "1", "--default-route", "1"}},
	{.name = "l3fwd, 1,000,000 routes", .arguments = {"l3fwd", "--generate", "1000000", "--default-route", "1"}},
	{.name = "bng, from the customers, 32,768 users", .arguments = {"bng", "--mtu", "1600"}},
	{.name = "bng, to them", .in = 1, .arguments = {"bng", "--mtu", "1600"}},
	{.name = "gtpu, from N3, 10,000 tunnels", .arguments = {"gtpu", "--mtu", "1600"}},
	{.name = "gtpu, to N3", .in = 1, .arguments = {"gtpu", "--mtu", "1600"}},
};

#define VARIANTS (sizeof(variants) / sizeof(*variants))

static struct rte_ring *rx[2], *tx[2];
static uint16_t device[2];
static struct rte_mempool *pool;

static int fail(const char *what)
{
	fprintf(stderr, "dray-vnf-probe: %s\n", what);
	return -1;
}

static int open_ports(void)
{
	static const char *const names[] = {"rx0", "tx0", "rx1", "tx1"};

	pool = rte_pktmbuf_pool_create("bench", 2047, 64, 0, RTE_MBUF_DEFAULT_BUF_SIZE, (int)rte_socket_id());
	for (unsigned i = 0; i < 2; i++) {
		struct rte_eth_conf conf = {0};
		int port;

		rx[i] = rte_ring_create(names[2 * i], 256, (int)rte_socket_id(), RING_F_SP_ENQ | RING_F_SC_DEQ);
		tx[i] = rte_ring_create(names[2 * i + 1], 256, (int)rte_socket_id(), RING_F_SP_ENQ | RING_F_SC_DEQ);
		if (!pool || !rx[i] || !tx[i])
			return fail("no memory");
		port = rte_eth_from_rings(names[2 * i], &rx[i], 1, &tx[i], 1, rte_socket_id());
		if (port < 0)
			return fail("no ring device");
		device[i] = (uint16_t)port;
		if (rte_eth_dev_configure(device[i], 1, 1, &conf) < 0 || rte_eth_rx_queue_setup(device[i], 0, 256, rte_socket_id(), NULL, pool) < 0 ||
		    rte_eth_tx_queue_setup(device[i], 0, 256, rte_socket_id(), NULL) < 0 || rte_eth_dev_start(device[i]) < 0)
			return fail("the ring device does not start");
	}
	return 0;
}

/* l3fwd: 21 random bits below one prefix; with many routes one address of each of as many as there are frames. */
static int choose_destinations(const struct variant *v, uint32_t *destinations)
{
	const struct options *o = &v->program.options;
	struct routes r = {0};
	uint64_t state = 1;

	for (uint32_t i = 0; i < FRAMES; i++)
		destinations[i] = 0x0a000000 | (number_random(&state) & 0x1fffff);
	if (o->routes < FRAMES)
		return 0;
	if (routes_generate(&r, o->routes, o->seed, v->program.function.port, 2) < 0)
		return fail("no memory");
	for (uint32_t i = 0; i < FRAMES; i++) {
		const struct route *route = &r.routes[i * (r.count / FRAMES)];

		destinations[i] = route->prefix | ((uint32_t)number_random(&state) & ~(uint32_t)(0xffffffff00000000 >> route->bits));
	}
	routes_close(&r);
	return 0;
}

static int open_variant(struct variant *v)
{
	static uint32_t destinations[FRAMES];
	struct program *p = &v->program;
	int n = 0;

	while (n < 6 && v->arguments[n])
		n++;
	if (options_read(n, (char **)(uintptr_t)v->arguments, &p->options) != 0)
		return fail("its own options are wrong");
	p->ports = p->function.ports = 2;
	p->lcores = 1;
	for (unsigned i = 0; i < 2; i++) {
		p->device[i] = device[i];
		options_port(&p->options, i, &p->function.port[i]);
		p->function.port[i].mtu = 1600;
	}
	if (options_function(&p->options, &p->function) < 0 || (p->options.mode == MODE_L3FWD && fib_open(p) < 0) || choose_destinations(v, destinations) < 0)
		return -1;
	v->frames = calloc(FRAMES, sizeof(*v->frames));
	if (!v->frames)
		return fail("no memory");
	frames_make(v->frames, &p->function, v->in, destinations);
	work_open(&v->worker, p, &v->counters, 0, NULL);
	return 0;
}

static void close_variant(struct variant *v)
{
	fib_close(&v->program);
	bng_close(&v->program.function.bng);
	gtpu_close(&v->program.function.gtpu);
	free(v->frames);
}

/* Put a burst of frames if the function receives; not measured. */
static int feed(const struct variant *v, uint32_t at)
{
	struct rte_mbuf *m[BURST];

	if (rte_pktmbuf_alloc_bulk(pool, m, BURST) != 0)
		return fail("packets were lost");
	for (unsigned i = 0; i < BURST; i++) {
		const struct frame *frame = &v->frames[at + i];

		memcpy(rte_pktmbuf_append(m[i], (uint16_t)frame->length), frame->bytes, frame->length);
	}
	return rte_ring_sp_enqueue_bulk(rx[v->in], (void **)m, BURST, NULL) ? 0 : fail("the ring is full");
}

static int take_away(void)
{
	struct rte_mbuf *m[BURST];
	unsigned taken = 0;

	for (unsigned i = 0; i < 2; i++) {
		unsigned n = rte_ring_sc_dequeue_burst(tx[i], (void **)m, BURST, NULL);

		rte_pktmbuf_free_bulk(m, n);
		taken += n;
	}
	return taken == BURST ? 0 : fail("a function dropped what it should forward");
}

/* Cycles of one packet, in a pass over all frames; below 0: error. */
static double pass(struct variant *v)
{
	uint64_t cycles = 0;

	for (uint32_t at = 0; at < FRAMES; at += BURST) {
		struct rte_mbuf *m[BURST];
		uint64_t began;
		unsigned n;

		if (feed(v, at) < 0)
			return -1;
		began = rte_rdtsc_precise();
		n = rte_eth_rx_burst(device[v->in], 0, m, BURST);
		v->worker.handle(&v->worker, v->in, m, n);
		work_flush(&v->worker);
		cycles += rte_rdtsc_precise() - began;
		if (take_away() < 0)
			return -1;
	}
	return (double)cycles / FRAMES;
}

/* A line "ROUND pass VARIANT" is answered with a line of JSON. */
static int answer(const char *line)
{
	unsigned round, which;
	double cycles;

	if (sscanf(line, "%u pass %u", &round, &which) != 2 || which >= VARIANTS)
		return fail("a line is not ROUND pass VARIANT, of which there are 0 to 7");
	cycles = pass(&variants[which]);
	if (cycles < 0)
		return -1;
	printf("{\"case\": \"%s\", \"round\": %u, \"unit\": \"cycles/packet\", \"tsc_hz\": %.0f, \"values\": [%.6g]}\n", variants[which].name, round,
	       (double)rte_get_tsc_hz(), cycles);
	fflush(stdout);
	return 0;
}

static int run(void)
{
	int ret = open_ports();
	char line[64];

	for (unsigned i = 0; i < VARIANTS && ret == 0; i++)
		ret = open_variant(&variants[i]);
	while (ret == 0 && fgets(line, sizeof(line), stdin))
		ret = answer(line);
	for (unsigned i = 0; i < VARIANTS; i++)
		close_variant(&variants[i]);
	return ret;
}

int main(void)
{
	static char *eal[] = {"dray-vnf-probe", "--no-huge", "--no-shconf", "-m", "768", "--no-pci", "--no-telemetry", "--log-level", "error", NULL};
	int ret;

	if (rte_eal_init(sizeof(eal) / sizeof(*eal) - 1, eal) < 0) {
		fail("EAL does not start");
		return 1;
	}
	ret = run() < 0;
	rte_eal_cleanup();
	return ret;
}
