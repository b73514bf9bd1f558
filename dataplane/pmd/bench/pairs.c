/* SPDX-License-Identifier: Apache-2.0 */
/* Starting pairs of applications, and reading what they count. */
#include "pairs.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker.h"
#include "clock.h"
#include "process.h"

#define START_S 20.0
#define MAX_SAMPLES 64
#define ROUND_TRIPS 20000
#define ROUND_TRIPS_S 30.0
#define EAL_TEXT 1024

void place_begin(struct place *place)
{
	cpu_set_t set;
	int n = 0;

	sched_getaffinity(0, sizeof(set), &set);
	for (int cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
		if (CPU_ISSET(cpu, &set))
			place->cpus[n++] = cpu;
	if (n < 2)
		place->cpus[1] = place->cpus[0];
	snprintf(place->directory, sizeof(place->directory), "/tmp/dray-pmd-bench-XXXXXX");
	if (!mkdtemp(place->directory)) {
		perror(place->directory);
		exit(1);
	}
}

/* All that anybody makes there. It is removed by a signal handler too, which may not look what there is. */
static const char *const files[] = {"a", "b", "journal", "s", "rxonly.log", "txonly.log", "generator0.log", "generator1.log"};

static void empty(const struct place *place)
{
	int fd = open(place->directory, O_DIRECTORY | O_CLOEXEC);

	for (unsigned i = 0; fd >= 0 && i < sizeof(files) / sizeof(files[0]); i++)
		unlinkat(fd, files[i], 0);
	if (fd >= 0)
		close(fd);
}

void place_end(const struct place *place)
{
	empty(place);
	rmdir(place->directory);
}

/* What EAL is given: {d} in the device's text is the directory. */
static void eal_text(const struct place *place, int side, const char *device, int dray, char *out, size_t size)
{
	const char *at;
	size_t n = (size_t)snprintf(out, size, "--lcores 0@%d,1@%d --no-huge --no-shconf -m 256 --single-file-segments --no-pci --no-telemetry ", place->cpus[side],
				    place->cpus[side]);

	if (dray)
		n += (size_t)snprintf(out + n, size - n, "-d %s ", place->driver);
	for (; n < size && (at = strstr(device, "{d}")); device = at + 3)
		n += (size_t)snprintf(out + n, size - n, "%.*s%s", (int)(at - device), device, place->directory);
	if (n < size)
		snprintf(out + n, size - n, "%s", device);
}

static struct process start_testpmd(const struct place *place, int side, const char *device, int dray, const char *mode, unsigned size,
				    const char *more)
{
	struct command c = {0};
	char log[128], eal[EAL_TEXT];

	eal_text(place, side, device, dray, eal, sizeof(eal));
	command_add(&c, "dpdk-testpmd %s -- --forward-mode=%s --stats-period=1 --total-num-mbufs=4096 --txpkts=%u %s", eal, mode, size, more);
	snprintf(log, sizeof(log), "%s/%s.log", place->directory, mode);
	return process_start(&c, log);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The median of what testpmd printed as its rate each second, without the first second and the last, in which it was not at work all the time. */
static double rate_in(const char *log, const char *label, unsigned wanted)
{
	double samples[MAX_SAMPLES];
	unsigned n = 0;

	for (const char *at = log; (at = strstr(at, label)) && n < MAX_SAMPLES;) {
		double value = strtod(at += strlen(label), NULL);

		if (value > 0 || n > 0) /* before the first there was nothing to count */
			samples[n++] = value;
	}
	if (n < wanted)
		return 0;
	qsort(samples + 1, n - 2, sizeof(*samples), compare);
	return samples[1 + (n - 2) / 2];
}

/* Wait until it has printed its rate for as many seconds as are wanted, and the two that do not count. */
static double rate_of(const struct place *place, struct process *p, const char *label)
{
	const uint64_t end = clock_ns() + (uint64_t)((place->seconds + START_S) * 1e9);
	double rate = 0;

	do {
		char *log;

		usleep(200000);
		log = process_log(p);
		rate = rate_in(log, label, (unsigned)place->seconds + 2);
		free(log);
	} while (rate == 0 && clock_ns() < end);
	return rate;
}

static struct broker *broker_of(const struct place *place)
{
	/* As a chain's broker makes a link by default. */
	struct broker_options o = {.directory = place->directory, .geometry = {.ring_size = 512, .pkt_slots = 512}};

	return broker_fork(&o);
}

static double failed(struct place *place, const char *why)
{
	place->why = why;
	return 0;
}

double pair_rate(struct place *place, const struct way *way, unsigned size)
{
	struct broker *broker = way->dray ? broker_of(place) : NULL;
	struct process receiver = start_testpmd(place, 1, way->receiver, way->dray, "rxonly", size, ""), sender;
	double rate = 0;

	if (!way->waits && process_says(&receiver, "Port statistics", START_S) < 0) {
		failed(place, "the receiving testpmd did not start");
	} else {
		sender = start_testpmd(place, 0, way->sender, way->dray, "txonly", size, way->application);
		if (process_says(&sender, "Port statistics", START_S) < 0)
			failed(place, "the sending testpmd did not start");
		else
			rate = rate_of(place, &receiver, "Rx-pps:");
		process_end(&receiver); /* before the sender: net_memif dies with its peer */
		process_end(&sender);
		if (rate == 0 && !place->why)
			failed(place, "no packet arrived");
	}
	process_end(&receiver);
	if (broker)
		broker_stop(broker);
	empty(place);
	return rate;
}

double null_rate(struct place *place, unsigned size)
{
	struct process sender = start_testpmd(place, 0, "--vdev net_null0", 0, "txonly", size, "");
	double rate = 0;

	if (process_says(&sender, "Port statistics", START_S) < 0)
		failed(place, "testpmd did not start");
	else
		rate = rate_of(place, &sender, "Tx-pps:");
	process_end(&sender);
	empty(place);
	return rate;
}

/* A generator on the device of the text, in the role that the words say. */
static struct process start_generator(const struct place *place, int side, const char *device, int dray, const char *role)
{
	const char *name = strstr(device, "--vdev ") + strlen("--vdev ");
	struct command c = {0};
	char log[128], eal[EAL_TEXT];

	eal_text(place, side, device, dray, eal, sizeof(eal));
	command_add(&c, "%s %s --busy --peer-timeout 10s --port dpdk:%.*s --eal", place->generator, role, (int)strcspn(name, ", "), name);
	command_word(&c, eal);
	snprintf(log, sizeof(log), "%s/generator%d.log", place->directory, side);
	return process_start(&c, log);
}

double pair_round_trip(struct place *place, const struct way *way)
{
	struct broker *broker = way->dray ? broker_of(place) : NULL;
	struct process sink = start_generator(place, 1, way->receiver, way->dray, "sink --reflect --once"), ping;
	char role[80], *log, *at;
	double p50 = 0;

	snprintf(role, sizeof(role), "ping --closed --size 64 --packets %u", ROUND_TRIPS);
	/* The sink is ready before its link is up: who serves the socket has made it. */
	if (!way->waits && process_says(&sink, "\"ready\"", START_S) < 0) {
		failed(place, "the reflecting generator did not start");
	} else {
		ping = start_generator(place, 0, way->sender, way->dray, role);
		process_wait(&ping, ROUND_TRIPS_S);
		log = process_log(&ping);
		at = strstr(log, "\"result\"");
		at = at ? strstr(at, "\"round_trip\"") : NULL;
		at = at ? strstr(at, "\"p50\":") : NULL;
		p50 = at ? strtod(at + strlen("\"p50\":"), NULL) : failed(place, "the generator had no round trip");
		free(log);
	}
	process_end(&sink);
	if (broker)
		broker_stop(broker);
	empty(place);
	return p50;
}
