/**
 * Runs inside the sandbox, with python3's own library only. One line of JSON per round: [target, address, open,
 * detail]. What it sends is a TCP handshake, which it then drops, and one DNS question; of what it reads it tells
 * names only, never values.
 *
 * A TCP reset counts as open: it comes from a host that was reached, where nothing listens. A firewall that rejects
 * sends an ICMP error instead, and the kernel tells the two apart in the socket's error queue (IP_RECVERR); where
 * there is none (gVisor), every refusal counts as open.
 */
export const PROBE_SCRIPT = String.raw`
import errno, json, os, re, select, socket, struct, time

RECVERR = {socket.AF_INET: (socket.IPPROTO_IP, 11), socket.AF_INET6: (socket.IPPROTO_IPV6, 25)}
FROM_ICMP = (2, 3)
MSG_ERRQUEUE = 0x2000

def rejected(sock):
    try:
        messages = sock.recvmsg(1, 512, MSG_ERRQUEUE | socket.MSG_DONTWAIT)[1]
    except OSError:
        return False
    return any(len(data) >= 5 and data[4] in FROM_ICMP for _, _, data in messages)

def words(code):
    return os.strerror(code) if code else 'connected'

def begin(target):
    family = socket.AF_INET6 if ':' in target['address'] else socket.AF_INET
    kind = socket.SOCK_DGRAM if target['udp'] else socket.SOCK_STREAM
    sock = socket.socket(family, kind)
    sock.setblocking(False)
    try:
        sock.setsockopt(*RECVERR[family], 1)
    except OSError:
        pass
    address, _, scope = target['address'].partition('%')
    where = (address, target['port'])
    if family == socket.AF_INET6:
        where += (0, socket.if_nametoindex(scope) if scope else 0)
    code = sock.connect_ex(where)
    if target['udp'] and code == 0:
        sock.send(QUESTION)
    return sock, code

def end(sock, target):
    """(open, detail) of a socket that poll has named."""
    if target['udp']:
        try:
            return (True, 'answered') if sock.recv(512) else (False, 'empty answer')
        except OSError as error:
            return False, words(error.errno)
    code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code == 0:
        return True, 'connected'
    if code == errno.ECONNREFUSED:
        return (False, 'rejected') if rejected(sock) else (True, 'refused by the host that it reached')
    return False, words(code)

def attempt(targets, seconds):
    found, open_sockets, poll = {}, {}, select.poll()
    for at, target in enumerate(targets):
        try:
            sock, code = begin(target)
        except OSError as error:
            found[at] = (False, words(error.errno))
            continue
        if code in (0, errno.EINPROGRESS):
            open_sockets[sock.fileno()] = (at, sock)
            poll.register(sock, select.POLLIN if target['udp'] else select.POLLOUT)
        else:
            found[at] = end(sock, target) if code == errno.ECONNREFUSED else (False, words(code))
            sock.close()
    deadline = time.monotonic() + seconds
    while open_sockets and time.monotonic() < deadline:
        for number, _ in poll.poll(max(1, int((deadline - time.monotonic()) * 1000))):
            at, sock = open_sockets.pop(number)
            poll.unregister(sock)
            found[at] = end(sock, targets[at])
            sock.close()
    for at, sock in open_sockets.values():
        found[at] = (False, 'no answer')
        sock.close()
    return [[t['name'], shown(t), *found[at]] for at, t in enumerate(targets)]

def shown(target):
    host = '[%s]' % target['address'] if ':' in target['address'] else target['address']
    return '%s:%d/%s' % (host, target['port'], 'udp' if target['udp'] else 'tcp')

QUESTION = struct.pack('!HHHHHH', 0x4842, 0x0100, 1, 0, 0, 0) + b'\x0akubernetes\x07default\x03svc\x07cluster\x05local\x00' + struct.pack('!HH', 1, 1)

def lines(path):
    try:
        with open(path, errors='replace') as file:
            return file.read(65536).splitlines()
    except OSError:
        return []

def neighbours(ports):
    """Link-local addresses of the neighbours that the targets before have made known, by the rule of EUI-64."""
    linked = {line.split()[5] for line in lines('/proc/net/if_inet6') if line.startswith('fe80')}
    found = []
    for line in lines('/proc/net/arp')[1:]:
        fields = line.split()
        if len(fields) < 6 or fields[5] not in linked or fields[3] == '00:00:00:00:00:00':
            continue
        mac = [int(part, 16) for part in fields[3].split(':')]
        mac[0] ^= 2
        parts = [mac[0] << 8 | mac[1], mac[2] << 8 | 0xff, 0xfe00 | mac[3], mac[4] << 8 | mac[5]]
        address = 'fe80::%x:%x:%x:%x%%%s' % (*parts, fields[5])
        found += [{'name': 'IPv6', 'address': address, 'port': port, 'udp': False} for port in ports]
    return found[:8]

SECRET_NAME = re.compile(r'TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|KUBECONFIG|BEARER', re.I)
SECRET_VALUE = re.compile(r'glpat-|glcbt-|gh[pousr]_|xox[bp]-|\bA[KS]IA[0-9A-Z]{16}|-----BEGIN|\beyJ[\w-]+\.eyJ|\bsk-[\w-]{16}|://[^/\s:@]*:[^/\s@]+@')

def secrets(pairs):
    return sorted({name for name, value in pairs if SECRET_NAME.search(name) or SECRET_VALUE.search(value)})

def environment(name, where, read):
    try:
        found = secrets(read())
    except OSError as error:
        return [name, where, False, 'not readable: ' + words(error.errno)]
    return [name, where, bool(found), 'holds ' + ', '.join(found)[:200] if found else 'holds no secret']

def first_process():
    with open('/proc/1/environ', 'rb') as file:
        entries = file.read(262144).decode('utf-8', 'replace').split('\0')
    return [tuple(entry.split('=', 1)) for entry in entries if '=' in entry]

TOKENS = ('/var/run/secrets/kubernetes.io', '/run/secrets/kubernetes.io')

def mounted():
    """Kubernetes fills the volumes of Secrets, ConfigMaps and tokens through a link of this name."""
    points = [line.split()[1] for line in lines('/proc/mounts') if len(line.split()) > 1]
    return sorted({point for point in points if os.path.lexists(point + '/..data')})[:5]

def inside():
    token = [path for path in TOKENS if os.path.lexists(path)]
    yield ['ServiceAccountToken', TOKENS[0], bool(token), 'is there' if token else 'is not there']
    points = mounted()
    yield ['Volume', ', '.join(points)[:200] or 'mounts', bool(points), 'data of the cluster is mounted' if points else 'none holds data of the cluster']
    yield environment('Environment', 'environment', lambda: list(os.environ.items()))
    yield environment('Environment', '/proc/1/environ', first_process)

def probe():
    results = attempt(CONFIG['targets'], CONFIG['seconds'])
    near = neighbours(CONFIG['linkLocalPorts'])
    if near:
        results += attempt(near, CONFIG['linkLocalSeconds'])
    else:
        results.append(['IPv6', 'link-local', False, 'no neighbour'])
    return results + list(inside())

for number in range(CONFIG['rounds']):
    if number:
        time.sleep(CONFIG['gapSeconds'])
    print(json.dumps(probe()), flush=True)
`;
