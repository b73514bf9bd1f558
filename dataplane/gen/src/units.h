/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers with units, as options have them. All return false if the text is anything else, or
 * the value does not fit.
 */
#ifndef GEN_UNITS_H
#define GEN_UNITS_H

#include <stdbool.h>
#include <stdint.h>

/* "1500", "10k", "2M", "1G": powers of 1000. */
bool units_number(const char *text, uint64_t *value);

/* The same, from `low` to `high`. */
bool units_between(const char *text, uint32_t low, uint32_t high, uint32_t *value);

/* "250us", "1.5ms", "0": in ns. */
bool units_time(const char *text, uint64_t *ns);

struct rate {
	uint64_t per_second; /* 0: as fast as possible */
	bool bits;	     /* of bits, not of packets */
};

/* "1000pps", "2.5Gbps", "max". */
bool units_rate(const char *text, struct rate *rate);

#endif
