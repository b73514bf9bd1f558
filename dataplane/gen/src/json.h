/* SPDX-License-Identifier: Apache-2.0 */
/* Results: objects of JSON, one a line, written whole. */
#ifndef GEN_JSON_H
#define GEN_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "histogram.h"

struct json {
	FILE *out;
	bool comma;
};

/* An object of its own on one line; json_end writes it out. Returns 0, or -1 if that failed. */
struct json json_begin(FILE *out, const char *event, const char *role, const char *port);
int json_end(struct json *j);

void json_open(struct json *j, const char *name);
void json_close(struct json *j);
void json_u64(struct json *j, const char *name, uint64_t value);
void json_i64(struct json *j, const char *name, int64_t value);
void json_double(struct json *j, const char *name, double value);
void json_bool(struct json *j, const char *name, bool value);
void json_string(struct json *j, const char *name, const char *value);

void json_histogram(struct json *j, const char *name, const struct histogram *h, bool counts);
/* The same, less its minimum, and without counts: RFC 5481's delay variation. */
void json_variation(struct json *j, const char *name, const struct histogram *h);

#endif
