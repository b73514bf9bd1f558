/* SPDX-License-Identifier: Apache-2.0 */
/* Samples in, tables and JSON out. */
#include "figures.h"

#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_FIGURES 128
#define MAX_SAMPLES 1000
#define MAX_TARGETS 2
#define MIN_SAMPLES 6 /* from the least to the greatest of n holds the median with 1 - 2^(1-n): of 5 with 94 %, of 6 with 97 % */
#define LOOKS 20
#define LOOK_US 50000

struct target {
	const struct figure *of;
	const char *what;
	double target;
	bool at_most;
};

struct figure {
	const char *group, *name, *unit, *limit, *missing;
	char marks[160];
	double samples[MAX_SAMPLES];
	unsigned n; /* samples, or values that a quantile comes from */
	bool is_quantile, hidden;
	double value, low, high;
	struct target targets[MAX_TARGETS];
	unsigned target_count;
	char limited[1024];
};

static struct figure *figures[MAX_FIGURES];
static unsigned count;
static char run_marks[160];

static void add_mark(char *marks, const char *mark)
{
	if (strlen(marks) + strlen(mark) + 3 > sizeof(run_marks))
		return;
	if (*marks)
		strcat(marks, "; ");
	strcat(marks, mark);
}

struct figure *figure(const char *group, const char *name, const char *unit, const char *limit)
{
	struct figure *f;

	for (unsigned i = 0; i < count; i++)
		if (!strcmp(figures[i]->group, group) && !strcmp(figures[i]->name, name))
			return figures[i];
	f = calloc(1, sizeof(*f));
	if (!f || count == MAX_FIGURES) {
		fprintf(stderr, "bench: no room for another figure\n");
		exit(1);
	}
	*f = (struct figure){.group = group, .name = name, .unit = unit, .limit = limit};
	return figures[count++] = f;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static unsigned within(double at, unsigned n)
{
	return at < 0 ? 0 : at > n - 1 ? n - 1 : (unsigned)at;
}

static void summarise(const double *values, unsigned n, double *value, double *low, double *high)
{
	double sorted[MAX_SAMPLES], off = ceil(0.98 * sqrt(n));

	memcpy(sorted, values, n * sizeof(*values));
	qsort(sorted, n, sizeof(*sorted), compare);
	*value = (sorted[n / 2] + sorted[(n - 1) / 2]) / 2;
	*low = sorted[within(n / 2 - off, n)];
	*high = sorted[within((n - 1) / 2 + off, n)];
}

void figure_add(struct figure *f, double sample)
{
	if (f->n == MAX_SAMPLES)
		return;
	f->samples[f->n++] = sample;
	summarise(f->samples, f->n, &f->value, &f->low, &f->high);
}

void figures_keep(unsigned n)
{
	for (unsigned i = 0; i < count; i++) {
		struct figure *f = figures[i];

		if (f->n <= n || f->is_quantile)
			continue;
		f->n = n;
		summarise(f->samples, n, &f->value, &f->low, &f->high);
	}
}

static int compare32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

void figure_quantile(struct figure *f, uint32_t *values, unsigned n, double q)
{
	double off = 1.96 * sqrt(n * q * (1 - q));

	if (n * (1 - q) < 1 || n == 0) {
		figure_missing(f, "too few samples for this quantile");
		return;
	}
	qsort(values, n, sizeof(*values), compare32);
	f->is_quantile = true;
	f->n = n;
	f->value = values[within(q * (n - 1), n)];
	f->low = values[within(q * (n - 1) - off, n)];
	f->high = values[within(q * (n - 1) + off, n)];
}

void figure_mark(struct figure *f, const char *mark)
{
	add_mark(f->marks, mark);
}

void figure_target(struct figure *f, const struct figure *of, const char *what, double target, bool at_most)
{
	if (f->target_count < MAX_TARGETS)
		f->targets[f->target_count++] = (struct target){.of = of, .what = what, .target = target, .at_most = at_most};
}

void figure_limited(struct figure *f, const char *by)
{
	snprintf(f->limited, sizeof(f->limited), "%s", by);
}

void figure_missing(struct figure *f, const char *reason)
{
	f->missing = reason;
}

void figures_hide(const char *group)
{
	for (unsigned i = 0; i < count; i++)
		if (!strcmp(figures[i]->group, group))
			figures[i]->hidden = true;
}

double figure_value(const struct figure *f)
{
	return f->value;
}

bool figure_measured(const struct figure *f)
{
	return !f->missing && f->n > 0;
}

void figures_mark(const char *mark)
{
	add_mark(run_marks, mark);
}

/* What wants to run at this moment besides the caller. */
static bool others_run(void)
{
	FILE *f = fopen("/proc/loadavg", "r");
	unsigned running = 0;
	bool known = f && fscanf(f, "%*s %*s %*s %u", &running) == 1;

	if (f)
		fclose(f);
	return known && running > 1;
}

/* By what runs now: the mean of the last minute would have in it what has ended, such as the build of what measures. */
static bool busy(void)
{
	unsigned seen = 0;

	for (unsigned i = 0; i < LOOKS; i++) {
		seen += others_run();
		usleep(LOOK_US);
	}
	return seen > LOOKS / 2;
}

void figures_look_at_machine(unsigned busy_threads)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0 && (unsigned)CPU_COUNT(&set) < busy_threads)
		figures_mark("oversubscribed");
	if (busy())
		figures_mark("busy machine");
}

/* Of one figure to another: of the samples of each round where both have as many, else of the values. */
static bool ratio(const struct figure *f, const struct figure *to, double r[3])
{
	double each[MAX_SAMPLES];

	if (f->missing || to->missing || !f->n || !to->n || to->value == 0)
		return false;
	r[0] = r[1] = r[2] = f->value / to->value;
	if (f->is_quantile || to->is_quantile || f->n != to->n)
		return true;
	for (unsigned i = 0; i < f->n; i++)
		each[i] = f->samples[i] / to->samples[i];
	summarise(each, f->n, &r[0], &r[1], &r[2]);
	return true;
}

static bool reached(const struct target *t, double value)
{
	return t->at_most ? value <= t->target : value >= t->target;
}

bool figure_reached(const struct figure *f)
{
	double r[3];

	for (unsigned i = 0; i < f->target_count; i++)
		if (f->targets[i].of && ratio(f, f->targets[i].of, r) && !reached(&f->targets[i], r[0]))
			return false;
	return true;
}

/* In words: whether a target was reached, and whether that is certain. */
static const char *outcome(const struct figure *f, const struct target *t, const double r[3])
{
	if (f->n < MIN_SAMPLES)
		return reached(t, r[0]) ? "reached, in too few rounds to be sure of" : "NOT reached, in too few rounds to be sure of";
	if (reached(t, r[1]) != reached(t, r[2]))
		return reached(t, r[0]) ? "reached, though its interval has the target in it" : "NOT reached, though its interval has the target in it";
	return reached(t, r[0]) ? "reached" : "NOT reached";
}

static void print_target(const struct figure *f, const struct target *t)
{
	double r[3];

	printf("  %-58s of %-38s ", f->name, t->what);
	if (f->missing || !f->n)
		printf("not measured: %s\n", f->missing ? f->missing : "left out of this profile");
	else if (!t->of || !ratio(f, t->of, r))
		printf("there is nothing to hold it against\n");
	else
		printf("%5.2f [%.2f, %.2f]  target %s %.2f: %s\n", r[0], r[1], r[2], t->at_most ? "at most" : "at least", t->target, outcome(f, t, r));
}

void figures_print_targets(void)
{
	printf("\ntargets: the median of the ratios of each round, with its 95 %% interval; marks of this run: %s\n", *run_marks ? run_marks : "none");
	for (unsigned i = 0; i < count; i++) {
		for (unsigned k = 0; k < figures[i]->target_count; k++)
			print_target(figures[i], &figures[i]->targets[k]);
		if (*figures[i]->limited)
			printf("%s", figures[i]->limited);
	}
}

static const struct figure *named(const char *name)
{
	for (unsigned i = 0; i < count; i++)
		if (name && !strcmp(figures[i]->name, name))
			return figures[i];
	return NULL;
}

static void print_value(double value, const char *unit)
{
	if (!strcmp(unit, "packets/s"))
		printf("%9.3f M/s", value / 1e6);
	else
		printf("%9.*f %s", value < 10 && value != floor(value) ? 2 : 0, value, unit);
}

static void print_figure(const struct figure *f)
{
	const struct figure *limit = named(f->limit);
	double scale = strcmp(f->unit, "packets/s") ? 1 : 1e6, r[3];

	printf("  %-50s ", f->name);
	if (f->missing || !f->n) {
		printf("not measured: %s\n", f->missing ? f->missing : "left out of this profile");
		return;
	}
	print_value(f->value, f->unit);
	if (f->low != f->high)
		printf(" [%.3g, %.3g]", f->low / scale, f->high / scale);
	if (limit && ratio(f, limit, r)) {
		printf("  %.3g ", r[0]);
		if (r[1] != r[2])
			printf("[%.3g, %.3g] ", r[1], r[2]);
		printf("of: %s", limit->name);
	}
	printf("%s%s\n", *f->marks ? "  -- " : "", f->marks);
}

static bool first_of_group(unsigned at)
{
	for (unsigned i = 0; i < at; i++)
		if (!strcmp(figures[i]->group, figures[at]->group))
			return false;
	return true;
}

void figures_print(void)
{
	printf("medians with their 95 %% interval; marks of this run: %s\n", *run_marks ? run_marks : "none");
	for (unsigned i = 0; i < count; i++) {
		if (figures[i]->hidden || !first_of_group(i))
			continue;
		printf("\n%s\n", figures[i]->group);
		for (unsigned k = i; k < count; k++)
			if (!strcmp(figures[k]->group, figures[i]->group))
				print_figure(figures[k]);
	}
}

static void write_ratio(FILE *out, const char *key, const struct figure *to, const double r[3])
{
	fprintf(out, "%s{\"name\": \"%s\", \"ratio\": %.6g, \"low\": %.6g, \"high\": %.6g}", key, to->name, r[0], r[1], r[2]);
}

static void write_targets(FILE *out, const struct figure *f)
{
	double r[3];

	if (f->target_count == 0)
		return;
	fprintf(out, "\"targets\": [");
	for (unsigned i = 0, n = 0; i < f->target_count; i++) {
		const struct target *t = &f->targets[i];

		if (!t->of || !ratio(f, t->of, r))
			continue;
		fprintf(out, "%s{\"name\": \"%s\", \"ratio\": %.6g, \"low\": %.6g, \"high\": %.6g, \"target\": %g, \"at_most\": %s, \"outcome\": \"%s\"}",
			n++ ? ", " : "", t->of->name, r[0], r[1], r[2], t->target, t->at_most ? "true" : "false", outcome(f, t, r));
	}
	fprintf(out, "], ");
}

static void write_figure(FILE *out, const struct figure *f)
{
	const struct figure *limit = named(f->limit);
	const char *between = "";
	double r[3];

	fprintf(out, "  {\"group\": \"%s\", \"name\": \"%s\", \"unit\": \"%s\", ", f->group, f->name, f->unit);
	if (f->missing || !f->n) {
		fprintf(out, "\"value\": null, \"missing\": \"%s\"}", f->missing ? f->missing : "left out of this profile");
		return;
	}
	fprintf(out, "\"value\": %.9g, \"low\": %.9g, \"high\": %.9g, \"samples\": %u", f->value, f->low, f->high, f->n);
	if (limit && ratio(f, limit, r))
		write_ratio(out, ", \"limit\": ", limit, r);
	fprintf(out, ", \"peers\": [");
	for (unsigned i = 0; i < count; i++) {
		const struct figure *peer = figures[i];

		if (peer == f || strcmp(peer->group, f->group) || strcmp(peer->unit, f->unit) || !ratio(f, peer, r))
			continue;
		write_ratio(out, between, peer, r);
		between = ", ";
	}
	fprintf(out, "], ");
	write_targets(out, f);
	fprintf(out, "\"marks\": \"%s%s%s\"}", run_marks, *run_marks && *f->marks ? "; " : "", f->marks);
}

int figures_write(const char *path)
{
	FILE *out = fopen(path, "w");

	if (!out)
		return -1;
	fprintf(out, "[\n");
	for (unsigned i = 0; i < count; i++) {
		write_figure(out, figures[i]);
		fprintf(out, "%s\n", i + 1 < count ? "," : "");
	}
	fprintf(out, "]\n");
	return fclose(out);
}
