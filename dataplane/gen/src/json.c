/* SPDX-License-Identifier: Apache-2.0 */
/* Writing JSON. */
#include "json.h"

#include <inttypes.h>

#define FORMAT_VERSION 1

static const struct {
	const char *name;
	double q;
} percentiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}};

#define PERCENTILES (sizeof(percentiles) / sizeof(*percentiles))

static void name_it(struct json *j, const char *name)
{
	fprintf(j->out, "%s\"%s\":", j->comma ? "," : "", name);
	j->comma = true;
}

struct json json_begin(FILE *out, const char *event, const char *role, const char *port)
{
	struct json j = {.out = out};

	fputc('{', out);
	json_u64(&j, "draygen", FORMAT_VERSION);
	json_string(&j, "event", event);
	json_string(&j, "role", role);
	json_string(&j, "port", port);
	return j;
}

int json_end(struct json *j)
{
	fputs("}\n", j->out);
	return fflush(j->out) == 0 && !ferror(j->out) ? 0 : -1;
}

void json_open(struct json *j, const char *name)
{
	name_it(j, name);
	fputc('{', j->out);
	j->comma = false;
}

void json_close(struct json *j)
{
	fputc('}', j->out);
	j->comma = true;
}

void json_u64(struct json *j, const char *name, uint64_t value)
{
	name_it(j, name);
	fprintf(j->out, "%" PRIu64, value);
}

void json_i64(struct json *j, const char *name, int64_t value)
{
	name_it(j, name);
	fprintf(j->out, "%" PRId64, value);
}

void json_double(struct json *j, const char *name, double value)
{
	name_it(j, name);
	fprintf(j->out, "%.10g", value);
}

void json_bool(struct json *j, const char *name, bool value)
{
	name_it(j, name);
	fputs(value ? "true" : "false", j->out);
}

void json_string(struct json *j, const char *name, const char *value)
{
	name_it(j, name);
	fputc('"', j->out);
	for (; *value; value++) {
		unsigned char c = (unsigned char)*value;

		if (c < 0x20 || c == '"' || c == '\\')
			fprintf(j->out, "\\u%04x", c);
		else
			fputc(c, j->out);
	}
	fputc('"', j->out);
}

/* A value less `base`; null if there is none. */
static void value_or_null(struct json *j, const char *name, bool there, uint64_t value,
			  uint64_t base)
{
	if (there) {
		json_u64(j, name, value - base);
		return;
	}
	name_it(j, name);
	fputs("null", j->out);
}

static void summary(struct json *j, const struct histogram *h, uint64_t base)
{
	value_or_null(j, "min", h->n > 0, h->min, base);
	value_or_null(j, "max", h->n > 0, h->max, base);
	for (unsigned i = 0; i < PERCENTILES; i++) {
		uint64_t value = 0;
		bool there = histogram_quantile(h, percentiles[i].q, &value);

		value_or_null(j, percentiles[i].name, there, value, base);
	}
}

static void write_counts(struct json *j, const struct histogram *h)
{
	const char *separator = "";

	name_it(j, "counts");
	fputc('[', j->out);
	for (uint32_t i = 0; i < HISTOGRAM_SIZE; i++) {
		if (!h->counts[i])
			continue;
		fprintf(j->out, "%s[%" PRIu64 ",%" PRIu64 "]", separator, histogram_lowest(i),
			h->counts[i]);
		separator = ",";
	}
	fputc(']', j->out);
}

void json_histogram(struct json *j, const char *name, const struct histogram *h, bool counts)
{
	json_open(j, name);
	json_u64(j, "n", h->n);
	json_u64(j, "sum", h->sum);
	summary(j, h, 0);
	if (counts)
		write_counts(j, h);
	json_close(j);
}

void json_variation(struct json *j, const char *name, const struct histogram *h)
{
	json_open(j, name);
	json_u64(j, "n", h->n);
	summary(j, h, h->n ? h->min : 0);
	json_close(j);
}
