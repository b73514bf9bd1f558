/* SPDX-License-Identifier: Apache-2.0 */
/* The physical limit of the moment by dray-limit; libdray by dray-bench, which measures a rate for each line that it is given. */
#include "physical.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "figures.h"

#define PACKETS 2000000u
#define GROUP "the physical limit of the moment"

const char physical_ring[] = "bare ring, 64 B written and read", physical_line[] = "a cache line to and fro";

static struct figure *ring, *line, *libdray;
static struct process bare;
static char limit_command[PATH_MAX + 64];

void physical_start(const struct place *place, const char *program, const char *group)
{
	struct command c = {.cpu = -1};
	char log[128];

	ring = figure(GROUP, physical_ring, "packets/s", NULL);
	line = figure(GROUP, physical_line, "ns", NULL);
	libdray = figure(group, "libdray alone, headers made and read, 64 B", "packets/s", physical_ring);
	if (!program) {
		figure_missing(ring, "no dray-limit");
		figure_missing(line, "no dray-limit");
		figure_missing(libdray, "no dray-bench");
		return;
	}
	snprintf(limit_command, sizeof(limit_command), "%s", program);
	strcpy(strrchr(limit_command, '/'), "/dray-limit --packets 2000000 --trips 4000 2>&1");
	command_add(&c, "%s --serve", program);
	snprintf(log, sizeof(log), "%s/bare.log", place->directory);
	bare = process_start(&c, log);
}

static void add(struct figure *f, const char *text, const char *label)
{
	const char *at = strstr(text, label);
	double value = at ? strtod(at + strlen(label), NULL) : 0;

	if (value > 0)
		figure_add(f, value);
	else
		figure_missing(f, "its program failed");
}

static void measure_limit(void)
{
	char text[512] = "";
	FILE *f = popen(limit_command, "r");

	if (f && !fgets(text, sizeof(text), f))
		*text = 0;
	if (f)
		pclose(f);
	add(ring, text, "\"ring_pps\": ");
	add(line, text, "\"line_ns\": ");
}

void physical_measure(void)
{
	size_t from = process_logged(&bare);
	char text[32], *log;

	if (!bare.pid)
		return;
	measure_limit();
	snprintf(text, sizeof(text), "%u\n", PACKETS);
	if (process_ask(&bare, text, NULL, NULL) < 0 || process_says(&bare, from, "\n", 20) < 0) {
		figure_missing(libdray, "dray-bench has ended");
		return;
	}
	log = process_log(&bare, from);
	add(libdray, log, "");
	free(log);
}

struct figure *physical_libdray(void)
{
	return libdray;
}

struct figure *physical_line_figure(void)
{
	return line;
}

void physical_end(void)
{
	process_end(&bare);
}
