/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers, addresses and times as users write them. Each returns false if the text is
 * anything else.
 */
#ifndef VNF_NUMBERS_H
#define VNF_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

/* Decimal, or hexadecimal after 0x. */
bool number_read(const char *text, uint64_t low, uint64_t high, uint64_t *value);
bool number_read32(const char *text, uint32_t low, uint32_t high, uint32_t *value);
bool number_ip4(const char *text, uint32_t *address); /* host order */
/* no bit is set after the prefix */
bool number_prefix(const char *text, uint32_t *address, uint8_t *bits);
bool number_time(const char *text, uint64_t *ns); /* with ns, us, ms or s; not 0 */

/* A generator whose numbers depend only on the seed, on every machine (splitmix64). */
uint64_t number_random(uint64_t *state);

#endif
