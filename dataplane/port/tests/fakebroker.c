/* SPDX-License-Identifier: Apache-2.0 */
/* A broker by hand. */
#include "fakebroker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "test.h"

static char directory[] = "/tmp/dray-test-XXXXXX";
static int listener;

int fake_accept(void)
{
	struct pollfd p = {.fd = listener, .events = POLLIN};

	CHECK(poll(&p, 1, 20000) == 1);
	return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
}

void fake_forget(void)
{
	struct pollfd p = {.fd = listener, .events = POLLIN};

	while (poll(&p, 1, 0) == 1)
		close(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
}

void fake_send_raw(int fd, const void *bytes, size_t size)
{
	(void)!send(fd, bytes, size, MSG_NOSIGNAL);
}

/* Wait for a message of a type; false when the end hangs up or sends ERROR first. */
bool fake_hear(int fd, enum wire_type type)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	struct wire_message m;
	int fds[WIRE_MAX_FDS];
	unsigned count;

	for (;;) {
		int ret;

		CHECK(poll(&p, 1, 20000) == 1);
		ret = wire_receive(fd, &m, fds, &count, FROM_END);
		if (ret || m.header.type == WIRE_ERROR)
			return false;
		while (count)
			close(fds[--count]);
		if (m.header.type == type)
			return true;
	}
}

void fake_welcome(struct wire_message *m)
{
	wire_begin(m, FROM_BROKER, WIRE_WELCOME, 0);
	m->welcome.features = FEATURES_KNOWN;
	strcpy(m->welcome.port, "a");
	m->welcome.mtu = 1500;
	m->welcome.queues = 1;
	m->welcome.telemetry_size = LAYOUT_PAGE + TELEMETRY_BLOCK;
}

void fake_welcome_with(int fd, struct wire_message *m, int telemetry)
{
	(void)wire_send(fd, m, telemetry >= 0 ? &telemetry : NULL, telemetry >= 0);
	if (telemetry >= 0)
		close(telemetry);
}

int fake_telemetry(void)
{
	return broker_memfd(LAYOUT_PAGE + TELEMETRY_BLOCK, FAKE_SEALS);
}

void fake_greet(int fd)
{
	struct wire_message m;

	CHECK(fake_hear(fd, WIRE_HELLO));
	fake_welcome(&m);
	fake_welcome_with(fd, &m, fake_telemetry());
}

static struct sockaddr_un address = {.sun_family = AF_UNIX};

void fake_listen(void)
{
	CHECK(mkdtemp(directory) != NULL);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/a", directory);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK_EQ(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	CHECK_EQ(listen(listener, 4), 0);
}

void fake_close(void)
{
	close(listener);
	unlink(address.sun_path);
	rmdir(directory);
}

const char *fake_directory(void)
{
	return directory;
}
