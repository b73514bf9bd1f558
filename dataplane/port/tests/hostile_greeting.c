/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker that breaks off, lies or says nothing before it has welcomed: dray_open ends in time
 * with an error, and leaves nothing open.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>

#include "fakebroker.h"
#include "test.h"

/* Cases of dray_open: each sends something instead of a good WELCOME. */

typedef void greeting(int fd);

static void hang_up(int fd)
{
	(void)fd;
}

static void say_nothing(int fd)
{
	(void)fake_hear(fd, WIRE_BYE); /* until the end gives up */
}

static void oversized(int fd)
{
	char big[4096] = {0};

	fake_send_raw(fd, big, sizeof(big));
}

static void truncated(int fd)
{
	struct wire_message m;

	fake_welcome(&m);
	fake_send_raw(fd, &m, wire_size(&m) - 1);
}

static void only_a_header(int fd)
{
	struct wire_message m;

	fake_welcome(&m);
	fake_send_raw(fd, &m, sizeof(m.header));
}

static void one_byte(int fd)
{
	fake_send_raw(fd, "D", 1);
}

static void wrong_magic(int fd)
{
	struct wire_message m;

	fake_welcome(&m);
	m.header.magic ^= 1;
	fake_welcome_with(fd, &m, fake_telemetry());
}

static void wrong_version(int fd)
{
	struct wire_message m;

	fake_welcome(&m);
	m.header.version = 2;
	fake_welcome_with(fd, &m, fake_telemetry());
}

static void unknown_type(int fd)
{
	struct wire_message m;

	fake_welcome(&m);
	m.header.type = WIRE_TYPES;
	fake_welcome_with(fd, &m, fake_telemetry());
}

static void another_name(int fd)
{
	struct wire_message m;

	fake_welcome(&m);
	strcpy(m.welcome.port, "b");
	fake_welcome_with(fd, &m, fake_telemetry());
}

static void reserved_bits(int fd)
{
	struct wire_message m;

	fake_welcome(&m);
	m.welcome.reserved = 1;
	fake_welcome_with(fd, &m, fake_telemetry());
}

static void too_many_queues(int fd)
{
	struct wire_message m;

	fake_welcome(&m);
	m.welcome.queues = 17;
	m.welcome.telemetry_size = LAYOUT_PAGE + 17 * TELEMETRY_BLOCK;
	fake_welcome_with(fd, &m, broker_memfd(m.welcome.telemetry_size, FAKE_SEALS));
}

static void no_telemetry(int fd)
{
	struct wire_message m;

	fake_welcome(&m);
	fake_welcome_with(fd, &m, -1);
}

static void many_descriptors(int fd)
{
	int fds[WIRE_MAX_FDS];
	struct wire_message m;

	fake_welcome(&m);
	for (unsigned i = 0; i < WIRE_MAX_FDS; i++)
		fds[i] = fake_telemetry();
	(void)wire_send(fd, &m, fds, WIRE_MAX_FDS);
	for (unsigned i = 0; i < WIRE_MAX_FDS; i++)
		close(fds[i]);
}

static void telemetry_is_short(int fd)
{
	struct wire_message m;

	fake_welcome(&m);
	fake_welcome_with(fd, &m, broker_memfd(4096, FAKE_SEALS));
}

static void telemetry_is_unsealed(int fd)
{
	struct wire_message m;

	fake_welcome(&m);
	fake_welcome_with(fd, &m, broker_memfd(LAYOUT_PAGE + TELEMETRY_BLOCK, 0));
}

static void telemetry_is_a_socket(int fd)
{
	struct wire_message m;

	fake_welcome(&m);
	fake_welcome_with(fd, &m, socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

static void offer_first(int fd)
{
	struct wire_message m;

	wire_begin(&m, FROM_BROKER, WIRE_SEALED, 1);
	(void)wire_send(fd, &m, NULL, 0);
}

static void stats_first(int fd)
{
	struct wire_message m;

	wire_begin(&m, FROM_BROKER, WIRE_STATS, 0);
	(void)wire_send(fd, &m, NULL, 0);
}

static void refused(int fd)
{
	struct wire_message m;

	wire_error(&m, FROM_BROKER, EBUSY, WIRE_HELLO, "open elsewhere");
	(void)wire_send(fd, &m, NULL, 0);
}

static const struct {
	greeting *greeting;
	int error;
} greetings[] = {
	{hang_up, -ECONNRESET},		  {say_nothing, -ETIMEDOUT},
	{oversized, -EMSGSIZE},		  {truncated, -EPROTO},
	{only_a_header, -EPROTO},	  {one_byte, -EPROTO},
	{wrong_magic, -EPROTO},		  {wrong_version, -EPROTONOSUPPORT},
	{unknown_type, -EPROTO},	  {another_name, -EPROTO},
	{reserved_bits, -EPROTO},	  {too_many_queues, -EPROTO},
	{no_telemetry, -EPROTO},	  {many_descriptors, -EPROTO},
	{telemetry_is_short, -EPROTO},	  {telemetry_is_unsealed, -EPERM},
	{telemetry_is_a_socket, -EPROTO}, {offer_first, -EPROTO},
	{stats_first, -EPROTO},		  {refused, -EBUSY},
};

static void *greet(void *argument)
{
	greeting *const *g = argument;
	int fd = fake_accept();

	if (fake_hear(fd, WIRE_HELLO))
		(*g)(fd);
	usleep(1000);
	close(fd);
	return NULL;
}

static void try_greeting(unsigned i)
{
	struct dray_options o = {.size = sizeof(o),
				 .directory = fake_directory(),
				 .timeout_ms = greetings[i].error == -ETIMEDOUT ? 300 : 60000};
	struct dray_port *port = NULL;
	unsigned before = test_open_fds();
	uint64_t start = clock_ns();
	pthread_t thread;
	int ret;

	CHECK_EQ(pthread_create(&thread, NULL, greet, (void *)&greetings[i].greeting), 0);
	ret = dray_open("a", &o, &port);
	if (ret != greetings[i].error)
		fprintf(stderr, "greeting %u\n", i);
	CHECK_EQ(ret, greetings[i].error);
	CHECK(port == NULL);
	CHECK(clock_ns() - start < test_patience_ns());
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(test_open_fds(), before);
}

int main(void)
{
	struct dray_options o = {.size = sizeof(o), .directory = "/nonexistent"};
	struct dray_port *port;

	CHECK_EQ(dray_open("a", &o, &port), -ENOENT);
	CHECK_EQ(dray_open("../a", &o, &port), -EINVAL);
	CHECK_EQ(dray_open("", &o, &port), -EINVAL);
	CHECK_EQ(dray_open("a-name-too-long-", &o, &port), -EINVAL);
	o.size = sizeof(o.size) - 1;
	CHECK_EQ(dray_open("a", &o, &port), -EINVAL);
	fake_listen();
	for (unsigned i = 0; i < sizeof(greetings) / sizeof(*greetings); i++)
		try_greeting(i);
	fake_close();
	return 0;
}
