/* SPDX-License-Identifier: Apache-2.0 */
/* What all pairs have in common. */
#include "pairs.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

#define CONTAINER_S 5.0 /* for runc to remove what it has made */

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

bool place_late(const struct place *place)
{
	return clock_ns() > place->end_ns;
}

void place_end(const struct place *place)
{
	pid_t pid = fork();

	if (pid == 0) {
		execlp("rm", "rm", "-rf", place->directory, (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static struct broker *broker_in(const char *directory)
{
	/* As a chain's broker makes a link by default. */
	struct broker_options o = {.directory = directory, .geometry = {.ring_size = 512, .pkt_slots = 512}};

	return broker_fork(&o);
}

void pair_begin(struct place *place, struct pair *pair, unsigned brokers)
{
	char second[96];

	*pair = (struct pair){0};
	snprintf(pair->directory, sizeof(pair->directory), "%s/%u", place->directory, place->made++);
	snprintf(second, sizeof(second), "%s/e", pair->directory);
	if (mkdir(pair->directory, 0700) < 0 || mkdir(second, 0700) < 0) {
		perror(pair->directory);
		exit(1);
	}
	for (unsigned i = 0; i < brokers; i++)
		pair->broker[i] = broker_in(i ? second : pair->directory);
}

void pair_text(const struct pair *pair, struct command *c, const char *text)
{
	char out[1024];
	size_t n = 0;

	for (; *text && n < sizeof(out) - sizeof(pair->directory) - 3; text++) {
		if (!strncmp(text, "{d}", 3) || !strncmp(text, "{e}", 3)) {
			n += (size_t)sprintf(out + n, "%s%s", pair->directory, text[1] == 'e' ? "/e" : "");
			text += 2;
		} else {
			out[n++] = *text;
		}
	}
	out[n] = 0;
	command_add(c, "%s", out);
}

void pair_eal(const struct place *place, const struct pair *pair, int side, const char *devices, int dray, struct command *c)
{
	int cpu = place->cpus[side];

	command_add(c, "--lcores 0@%d,1@%d --no-huge --no-shconf -m 128 --single-file-segments --no-pci --no-telemetry", cpu, cpu);
	if (dray)
		command_add(c, "-d %s", place->driver);
	pair_text(pair, c, devices);
}

struct process pair_run(const struct pair *pair, const struct command *command, const char *name)
{
	char log[112];

	snprintf(log, sizeof(log), "%s/%s.log", pair->directory, name);
	return process_start(command, log);
}

void pair_resume(const struct pair *p)
{
	process_signal(&p->between, SIGCONT);
	process_signal(&p->receiver, SIGCONT);
	process_signal(&p->sender, SIGCONT);
}

void pair_pause(const struct pair *p)
{
	process_signal(&p->sender, SIGSTOP);
	process_signal(&p->receiver, SIGSTOP);
	process_signal(&p->between, SIGSTOP);
}

void pair_end_container(struct pair *p)
{
	if (!p->container || !p->between.pid)
		return;
	process_signal(&p->between, SIGCONT);
	kill(process_innermost(&p->between), SIGTERM);
	process_wait(&p->between, CONTAINER_S);
}

void pair_end(struct pair *p)
{
	pair_end_container(p);
	process_end(&p->receiver); /* before the sender: net_memif dies with its peer */
	process_end(&p->sender);
	process_end(&p->between);
	for (unsigned i = 0; i < 2; i++) {
		if (p->broker[i])
			broker_stop(p->broker[i]);
		p->broker[i] = NULL;
	}
}

double pair_failed(struct pair *p, const char *why)
{
	if (!p->why)
		p->why = why;
	pair_resume(p);
	pair_end(p);
	return 0;
}
