/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker that orders traffic classes out of turn: the end refuses. A port that was opened with
 * classes can get others, and one without cannot.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "fakebroker.h"
#include "test.h"

/* FIFOs that share the port in strict order. */
static struct wire_classes order(uint32_t classes)
{
	struct wire_classes c = {.scheduler = SCHEDULER_STRICT, .classes = classes};

	for (uint32_t i = 0; i < classes; i++)
		c.class[i] = (struct wire_class){.dscp = 1ull << i, .limit = 50};
	return c;
}

static void welcome(int fd, uint32_t flags, uint32_t queues)
{
	struct wire_message m;

	fake_welcome(&m);
	m.welcome.flags = flags;
	m.welcome.queues = queues;
	m.welcome.telemetry_size = LAYOUT_PAGE + (uint64_t)queues * TELEMETRY_BLOCK;
	fake_welcome_with(fd, &m, broker_memfd(m.welcome.telemetry_size, FAKE_SEALS));
}

static void say(int fd, const struct wire_classes *classes)
{
	struct wire_message m;

	wire_begin(&m, FROM_BROKER, WIRE_CLASSES, 0);
	m.classes = *classes;
	(void)wire_send(fd, &m, NULL, 0);
}

/* The errno value with which the end refuses; 0 if it hangs up without. */
static uint32_t refusal(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	struct wire_message m;
	int fds[WIRE_MAX_FDS];
	unsigned count;

	for (;;) {
		CHECK(poll(&p, 1, 20000) == 1);
		if (wire_receive(fd, &m, fds, &count, FROM_END))
			return 0;
		if (m.header.type == WIRE_ERROR)
			return m.error.code;
	}
}

/* While the port is opened. */

typedef void greeting(int fd);

static void missing(int fd)
{
	welcome(fd, WELCOME_CLASSES, 1);
	CHECK_EQ(refusal(fd), 0); /* it gives up */
}

static void of_two_queues(int fd)
{
	const struct wire_classes c = order(2);

	welcome(fd, WELCOME_CLASSES, 2);
	say(fd, &c);
	CHECK_EQ(refusal(fd), EPROTO);
}

static void of_nonsense(int fd)
{
	struct wire_classes c = order(2);

	c.scheduler = SCHEDULER_NONE; /* takes one class */
	welcome(fd, WELCOME_CLASSES, 1);
	say(fd, &c);
	CHECK_EQ(refusal(fd), EPROTO);
}

static void something_else(int fd)
{
	struct wire_message m;

	welcome(fd, WELCOME_CLASSES, 1);
	wire_begin(&m, FROM_BROKER, WIRE_STATS, 0);
	(void)wire_send(fd, &m, NULL, 0);
	CHECK_EQ(refusal(fd), EPROTO);
}

static void hang_up(int fd)
{
	welcome(fd, WELCOME_CLASSES, 1);
}

/* These open the port, and lose their connection then. */

static void others(int fd)
{
	struct wire_classes c = order(2);

	welcome(fd, WELCOME_CLASSES, 1);
	for (unsigned i = 2; i < 5; i++) {
		c = order(i);
		say(fd, &c);
		CHECK(fake_hear(fd, WIRE_CLASSES));
	}
	c.scheduler = SCHEDULER_NONE;
	say(fd, &c);
	CHECK_EQ(refusal(fd), EPROTO);
}

static void without_flag(int fd)
{
	const struct wire_classes c = order(2);

	welcome(fd, 0, 1);
	say(fd, &c);
	CHECK_EQ(refusal(fd), EPROTO);
}

static const struct {
	greeting *greeting;
	int error; /* of dray_open */
} greetings[] = {
	{missing, -ETIMEDOUT},	   {of_two_queues, -EPROTO}, {of_nonsense, -EPROTO},
	{something_else, -EPROTO}, {hang_up, -ECONNRESET},   {others, 0},
	{without_flag, 0},
};

struct session {
	greeting *greeting;
	_Atomic bool over;
};

static void *greet(void *argument)
{
	struct session *s = argument;
	int fd = fake_accept();

	CHECK(fake_hear(fd, WIRE_HELLO));
	s->greeting(fd);
	close(fd);
	atomic_store(&s->over, true);
	return NULL;
}

static bool has_broker(struct dray_port *port)
{
	struct dray_info info = {.size = sizeof(info)};

	CHECK_EQ(dray_info(port, &info), 0);
	return info.broker;
}

static void try_greeting(unsigned i)
{
	struct dray_options o = {.size = sizeof(o),
				 .directory = fake_directory(),
				 .timeout_ms = greetings[i].error == -ETIMEDOUT ? 300 : 60000};
	struct session s = {.greeting = greetings[i].greeting};
	unsigned before = test_open_fds();
	struct dray_port *port = NULL;
	pthread_t thread;
	int ret;

	CHECK_EQ(pthread_create(&thread, NULL, greet, &s), 0);
	ret = dray_open("a", &o, &port);
	if (ret != greetings[i].error)
		fprintf(stderr, "greeting %u\n", i);
	CHECK_EQ(ret, greetings[i].error);
	if (port) {
		UNTIL(atomic_load(&s.over), test_service(port, NULL));
		CHECK(!has_broker(port));
		CHECK_EQ(dray_close(port), 0);
		fake_forget();
	}
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(test_open_fds(), before);
}

/* What the brokers after a first one order; the last gets a port that works on. */
struct later {
	struct wire_classes first;
	_Atomic unsigned refused;
	_Atomic bool over; /* the port is about to be closed */
};

static int greet_again(void)
{
	int fd = fake_accept();

	CHECK(fake_hear(fd, WIRE_HELLO));
	return fd;
}

/* NO_WELCOME: the classes come before it. */
#define NO_WELCOME UINT32_MAX

static void order_other(struct later *s, uint32_t flags, const struct wire_classes *classes)
{
	uint32_t error;

	/* The end hangs up without, and dials again, if this took so long that it gave up. */
	do {
		int fd = greet_again();

		if (flags != NO_WELCOME)
			welcome(fd, flags, 1);
		if (classes)
			say(fd, classes);
		error = refusal(fd);
		close(fd);
	} while (error == 0);
	CHECK_EQ(error, EPROTO);
	atomic_fetch_add(&s->refused, 1);
}

static void *serve(void *argument)
{
	struct later *s = argument;
	struct wire_classes other = order(3);
	int fd = greet_again();

	welcome(fd, s->first.classes ? WELCOME_CLASSES : 0, 1);
	if (s->first.classes) {
		say(fd, &s->first);
		CHECK(fake_hear(fd, WIRE_CLASSES));
	}
	close(fd);
	order_other(s, NO_WELCOME, &other);
	order_other(s, s->first.classes ? 0 : WELCOME_CLASSES, s->first.classes ? NULL : &other);
	do {
		fd = greet_again();
		welcome(fd, s->first.classes ? WELCOME_CLASSES : 0, 1);
		if (s->first.classes)
			say(fd, &other);
		CHECK_EQ(refusal(fd), 0); /* when the port is closed */
		close(fd);
	} while (!atomic_load(&s->over));
	return NULL;
}

static void try_later(uint32_t classes)
{
	struct dray_options o = {
		.size = sizeof(o), .directory = fake_directory(), .timeout_ms = 60000};
	struct later s = {.first = classes ? order(classes) : (struct wire_classes){0}};
	struct dray_port *port;
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, serve, &s), 0);
	CHECK_EQ(dray_open("a", &o, &port), 0);
	UNTIL(atomic_load(&s.refused) == 2 && has_broker(port), {
		test_service(port, NULL);
		usleep(1000);
	});
	atomic_store(&s.over, true);
	CHECK_EQ(dray_close(port), 0);
	fake_forget();
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

int main(void)
{
	fake_listen();
	for (unsigned i = 0; i < sizeof(greetings) / sizeof(*greetings); i++)
		try_greeting(i);
	try_later(2);
	try_later(0);
	fake_close();
	return 0;
}
