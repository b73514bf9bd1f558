/* SPDX-License-Identifier: Apache-2.0 */
/* draygen: between libdray's ports, on DPDK's devices, and with a switch or a function between two of its ports. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pairs.h"

#define INTERVAL_MS 50
#define SKIPPED 2 /* intervals: the first has the pause in it, and the next begins within */
#define MAX_LINES 256
#define STEP_MS 10
#define SETTLE_US 50000
#define PATIENCE_MS 5000

static void begin_command(const struct place *place, struct command *c, const char *role)
{
	command_add(c, "%s %s --busy --peer-timeout 10s --interval %dms", place->generator, role, INTERVAL_MS);
}

/* On a device, whose name stands first in the text. */
static struct process on_device(const struct place *place, const struct pair *pair, int side, const char *device, int dray, const char *role,
				const char *name)
{
	const char *begin = strstr(device, "--vdev ") + strlen("--vdev ");
	struct command c = {.cpu = -1}, eal = {.cpu = -1};
	char text[1024];
	size_t n = 0;

	begin_command(place, &c, role);
	command_add(&c, "--port dpdk:%.*s --eal", (int)strcspn(begin, ", "), begin);
	pair_eal(place, pair, side, device, dray, &eal);
	for (unsigned i = 0; i < eal.n && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s ", eal.words[i]);
	command_word(&c, text);
	return pair_run(pair, &c, name);
}

/* On a port of libdray, or on none. */
static struct process on_port(const struct place *place, const struct pair *pair, int side, const char *port, const char *role, const char *name)
{
	struct command c = {.cpu = place->cpus[side]};

	command_add(&c, "env DRAY_PORTS=%s", pair->directory);
	begin_command(place, &c, role);
	command_add(&c, "--port %s", port);
	return pair_run(pair, &c, name);
}

/* A generator is at work when it has said so, and its first interval is over. */
static void finish_start(struct pair *pair, struct process *last)
{
	if (!pair->why && process_says(last, 0, "\"event\":\"interval\"", START_S) < 0)
		pair_failed(pair, "the generator did not start");
	pair_pause(pair);
}

void native_start(struct place *place, unsigned size, struct pair *pair)
{
	char role[64];

	pair_begin(place, pair, 1);
	pair->receiver = on_port(place, pair, 1, "dray:b", "sink", "sink");
	if (process_says(&pair->receiver, 0, "\"ready\"", START_S) < 0) {
		pair_failed(pair, "the sink did not start");
		return;
	}
	snprintf(role, sizeof(role), "send --rate max --size %u", size);
	pair->sender = on_port(place, pair, 0, "dray:a", role, "send");
	finish_start(pair, &pair->receiver);
}

void ceiling_start(struct place *place, const char *role, struct pair *pair)
{
	pair_begin(place, pair, 0);
	pair->sender = on_port(place, pair, 0, "null", role, "null");
	finish_start(pair, &pair->sender);
}

/* The generator at both ends of what is between, which is on the other core. */
static void loop_start(struct place *place, struct pair *pair, const char *devices, const char *second, int dray, unsigned size)
{
	char role[96];

	snprintf(role, sizeof(role), "loop --both --rate max --size %u --to-port dpdk:%s", size, second);
	pair->sender = on_device(place, pair, 0, devices, dray, role, "loop");
	finish_start(pair, &pair->sender);
}

#define DRAY_BOTH "--vdev net_dray0,port=a,dir={d} --vdev net_dray1,port=a,dir={e}"
#define VIRTIO_BOTH "--vdev net_virtio_user0,path={d}/v1,server=1,queues=1,mac=02:00:00:00:00:01 --vdev net_virtio_user1,path={d}/v2,server=1,queues=1,mac=02:00:00:00:00:02"

/* In namespaces of its own, of which the first process takes all others along when it dies. */
static void in_namespaces(struct command *c, const char *more)
{
	command_add(c, "unshare %s --mount --pid --fork --kill-child --mount-proc bash", more);
}

void switch_start(struct place *place, const char *kind, unsigned size, struct pair *pair)
{
	const int dray = strcmp(kind, "dray") == 0;
	struct command c = {.cpu = place->cpus[1]};

	pair_begin(place, pair, dray ? 2 : 0);
	in_namespaces(&c, "--net");
	command_add(&c, "%s/switch.sh %s %s %d %s", place->scripts, pair->directory, kind, place->cpus[1], place->driver);
	pair->between = pair_run(pair, &c, "switch");
	if (process_says(&pair->between, 0, "the switch is ready", START_S) < 0)
		pair_failed(pair, "no Open vSwitch with DPDK, or it did not start");
	else
		loop_start(place, pair, dray ? DRAY_BOTH : VIRTIO_BOTH, dray ? "net_dray1" : "net_virtio_user1", dray, size);
}

void forward_start(struct place *place, int container, unsigned size, struct pair *pair)
{
	struct command c = {.cpu = place->cpus[1]};

	pair_begin(place, pair, 2);
	pair->container = container != 0;
	if (container) {
		in_namespaces(&c, "");
		command_add(&c, "%s/container.sh %s", place->scripts, pair->directory);
	}
	command_add(&c, "%s", place->vnf);
	pair_eal(place, pair, 1, "--vdev net_dray0,port=b,dir={d} --vdev net_dray1,port=b,dir={e}", 1, &c);
	command_add(&c, "-- l2fwd --duration 1000s");
	pair->between = pair_run(pair, &c, "vnf");
	if (process_says(&pair->between, 0, "\"ready\"", START_S) < 0)
		pair_failed(pair, container ? "no container, or dray-vnf did not start in it" : "dray-vnf did not start");
	else
		loop_start(place, pair, DRAY_BOTH, "net_dray1", 1, size);
}

/* The number behind a name, summed up over all places in a line. */
static double field(const char *line, const char *name)
{
	const char *end = strchr(line, '\n');
	double sum = 0;

	for (const char *at = line; (at = strstr(at, name)) && at < end;)
		sum += strtod(at += strlen(name), NULL);
	return sum;
}

/* The lines of *log, which the caller frees, that tell of intervals; returns how many. */
static unsigned read_intervals(const struct process *p, size_t from, char **log, const char **lines)
{
	unsigned n = 0;

	*log = process_log(p, from);
	for (const char *at = *log; n < MAX_LINES && strchr(at, '\n'); at = strchr(at, '\n') + 1)
		if (strncmp(at, "{\"draygen\"", 10) == 0)
			lines[n++] = at;
	return n;
}

/* Packets a second that a generator receives, or sends if it does nothing else; 0: it has ended. */
static double rate_of(const struct place *place, struct process *p)
{
	const unsigned wanted = SKIPPED + (unsigned)(place->seconds * 1000 / INTERVAL_MS);
	const size_t from = process_logged(p);
	const char *lines[MAX_LINES];
	double packets = 0, ns = 0;
	unsigned n, tries = 0;
	char *log;

	while ((n = read_intervals(p, from, &log, lines)) < wanted && tries++ < PATIENCE_MS / STEP_MS) {
		free(log);
		usleep(STEP_MS * 1000);
	}
	for (unsigned i = SKIPPED; i < n; i++) {
		packets += field(lines[i], strstr(log, "\"received\":") ? "\"received\":" : "\"sent\":");
		ns += field(lines[i], "\"to_ns\":") - field(lines[i], "\"from_ns\":");
	}
	free(log);
	return ns > 0 ? packets / ns * 1e9 : 0;
}

double generator_rate(const struct place *place, struct pair *pair)
{
	double rate;

	if (pair->why)
		return 0;
	pair_resume(pair);
	rate = rate_of(place, pair->receiver.pid ? &pair->receiver : &pair->sender);
	pair_pause(pair);
	return rate > 0 ? rate : pair_failed(pair, "no packet arrived, or a generator has ended");
}

/* Packets of dray-vnf so far, and cycles that they took; it prints them on SIGUSR1. */
static int ask_vnf(struct pair *pair, double *packets, double *cycles)
{
	size_t from = process_logged(&pair->between);
	const char *label = "\"cycles_per_packet\":";
	char *log, *at;

	if (!pair->between.pid)
		return -1;
	kill(process_innermost(&pair->between), SIGUSR1);
	if (process_says(&pair->between, from, "}\n", 5) < 0)
		return -1;
	log = process_log(&pair->between, from);
	at = strstr(log, "\"received\":");
	*packets = at ? strtod(at + strlen("\"received\":"), NULL) : 0;
	at = strstr(log, label);
	*cycles = at ? strtod(at + strlen(label), NULL) * *packets : 0;
	free(log);
	return 0;
}

double forward_rate(const struct place *place, struct pair *pair, double *cycles)
{
	double packets[2] = {0}, sums[2] = {0}, rate = 0;

	if (pair->why)
		return 0;
	pair_resume(pair);
	usleep(SETTLE_US); /* the round of dray-vnf that the pause was in is over then */
	if (ask_vnf(pair, &packets[0], &sums[0]) == 0)
		rate = rate_of(place, &pair->sender);
	if (rate == 0 || ask_vnf(pair, &packets[1], &sums[1]) < 0 || packets[1] <= packets[0])
		return pair_failed(pair, "no packet came through dray-vnf, or it has ended");
	pair_pause(pair);
	*cycles = (sums[1] - sums[0]) / (packets[1] - packets[0]);
	return rate;
}
