/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applications that were built with an older or a newer header: their structs are smaller or larger
 * than the library's.
 */
#include <errno.h>

#include "test.h"

#define MORE 24 /* bytes that a newer header adds */

struct newer_options {
	struct dray_options known;
	uint8_t more[MORE];
};

struct newer_info {
	struct dray_info known;
	uint8_t more[MORE];
};

struct newer_stats {
	struct dray_stats known;
	uint8_t more[MORE];
};

static int open_with(struct broker *b, size_t size, unsigned unknown_byte, uint8_t value)
{
	struct newer_options o = {
		.known = {.size = size, .directory = broker_directory(b), .timeout_ms = 60000}};
	struct dray_port *port = NULL;
	int ret;

	o.more[unknown_byte] = value;
	ret = dray_open("a", &o.known, &port);
	CHECK((ret == 0) == (port != NULL));
	if (ret == 0)
		CHECK_EQ(dray_close(port), 0);
	return ret;
}

/* The struct has no padding that a later field could take without a change of size. */
_Static_assert(sizeof(struct dray_options) ==
		       offsetof(struct dray_options, reserved) + sizeof(uint32_t),
	       "padding at the end of dray_options");

static int open_with_reserved(struct broker *b, uint32_t value)
{
	struct dray_options o = {.size = sizeof(o),
				 .directory = broker_directory(b),
				 .timeout_ms = 60000,
				 .reserved = value};
	struct dray_port *port = NULL;
	int ret = dray_open("a", &o, &port);

	if (ret == 0)
		CHECK_EQ(dray_close(port), 0);
	return ret;
}

static void options(struct broker *b)
{
	CHECK_EQ(open_with_reserved(b, 0), 0);
	CHECK_EQ(open_with_reserved(b, 1), -E2BIG);
	CHECK_EQ(open_with(b, sizeof(struct newer_options), 0, 0), 0);
	CHECK_EQ(open_with(b, sizeof(struct newer_options), 0, 1), -E2BIG);
	CHECK_EQ(open_with(b, sizeof(struct newer_options), MORE - 1, 0x80), -E2BIG);
	CHECK_EQ(open_with(b, sizeof(struct dray_options), 0, 1), 0); /* outside the struct */
	CHECK_EQ(open_with(b, offsetof(struct dray_options, queues), 0, 0), 0);
	CHECK_EQ(open_with(b, sizeof(size_t) - 1, 0, 0), -EINVAL);
	CHECK_EQ(open_with(b, 0, 0, 0), -EINVAL);
	CHECK_EQ(open_with(b, 4097, 0, 0), -E2BIG);
	CHECK_EQ(open_with(b, SIZE_MAX, 0, 0), -E2BIG);
}

static void info(struct dray_port *port)
{
	struct newer_info i;

	memset(&i, 0xee, sizeof(i));
	i.known.size = sizeof(i);
	CHECK_EQ(dray_info(port, &i.known), 0);
	CHECK_EQ(i.known.size, sizeof(i));
	CHECK(strcmp(i.known.name, "a") == 0 && i.known.mtu == 1500);
	for (unsigned n = 0; n < MORE; n++)
		CHECK_EQ(i.more[n], 0);

	memset(&i, 0xee, sizeof(i));
	i.known.size = offsetof(struct dray_info, mac);
	CHECK_EQ(dray_info(port, &i.known), 0);
	CHECK(strcmp(i.known.name, "a") == 0);
	CHECK_EQ(i.known.mac[0], 0xee);

	i.known.size = 0;
	CHECK_EQ(dray_info(port, &i.known), -EINVAL);
	i.known.size = SIZE_MAX;
	CHECK_EQ(dray_info(port, &i.known), -E2BIG);
}

static void stats(struct dray_port *port)
{
	struct newer_stats s;

	memset(&s, 0xee, sizeof(s));
	s.known.size = sizeof(s);
	CHECK_EQ(dray_stats(port, DRAY_ALL_QUEUES, &s.known), 0);
	CHECK_EQ(s.known.size, sizeof(s));
	CHECK_EQ(s.known.tx_packets, 0);
	for (unsigned n = 0; n < MORE; n++)
		CHECK_EQ(s.more[n], 0);

	memset(&s, 0xee, sizeof(s));
	s.known.size = offsetof(struct dray_stats, maps);
	CHECK_EQ(dray_stats(port, DRAY_ALL_QUEUES, &s.known), 0);
	CHECK_EQ(s.known.held, 0);
	CHECK(s.known.maps == UINT64_C(0xeeeeeeeeeeeeeeee));

	s.known.size = sizeof(size_t) - 1;
	CHECK_EQ(dray_stats(port, DRAY_ALL_QUEUES, &s.known), -EINVAL);
	s.known.size = 4097;
	CHECK_EQ(dray_stats(port, DRAY_ALL_QUEUES, &s.known), -E2BIG);
}

int main(void)
{
	struct broker *b = broker_start(NULL);
	struct dray_port *port;

	options(b);
	port = test_open(b, "a", DRAY_MODE_BUSY, 0);
	info(port);
	stats(port);
	CHECK_EQ(dray_close(port), 0);
	broker_stop(b);
	return 0;
}
