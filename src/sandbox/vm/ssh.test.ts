import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { connectArgs, remoteCommand, sessionArgs, sshFiles } from './ssh.ts';

const files = sshFiles('/tmp/hb-vm-1');
const target = { address: '10.0.0.7', user: 'sandbox', alias: 'uid-1' };
const connect = (pinned: boolean, address = target.address) =>
  connectArgs({ ...target, address }, files, { pinned, log: '/tmp/hb-vm-1/log', command: 'true' });
const session = () => sessionArgs(target, files, { log: '/tmp/hb-vm-1/log', command: 'true' });

describe('the words for ssh', () => {
  it.each([
    ['the connection', () => connect(false)],
    ['a command', session],
  ])('for %s read nobody’s configuration, ask nothing and forward nothing', (_name, words) => {
    const said = words().join(' ');
    expect(said.startsWith('-F /dev/null -T ')).toBe(true);
    for (const option of ['BatchMode=yes', 'ForwardAgent=no', 'ClearAllForwardings=yes'])
      expect(said).toContain(`-o ${option}`);
    expect(words().slice(-3)).toEqual(['--', '10.0.0.7', 'true']);
  });

  it('for the connection use the one key, no agent, and give up on a silent address after 5 s', () => {
    const said = connect(false).join(' ');
    for (const option of [
      ...['IdentitiesOnly=yes', 'IdentityAgent=none', 'IdentityFile=/tmp/hb-vm-1/key', 'ConnectTimeout=5'],
      ...['PreferredAuthentications=publickey', 'GlobalKnownHostsFile=/dev/null', 'HostKeyAlias=uid-1'],
    ])
      expect(said).toContain(`-o ${option}`);
  });

  it('keep the host key of the first contact, and afterwards take no other', () => {
    expect(connect(false)).toContain('StrictHostKeyChecking=accept-new');
    expect(connect(true)).toContain('StrictHostKeyChecking=yes');
  });

  it('for a command never open a connection of their own', () => {
    expect(session()).toContain('ProxyCommand=false');
    expect(session()).toContain('ControlMaster=no');
  });

  it.each(['', 'undefined', 'example.org', '-oProxyCommand=x', '10.0.0.7 -v', '10.0.0'])(
    'BR-41: are never made for the host %j',
    (address) => {
      expect(() => connect(false, address)).toThrow('no IP address');
    },
  );

  it('take an IPv6 address', () => {
    expect(connect(false, 'fd00::7')).toContain('fd00::7');
  });

  it('fit the path of a socket', () => {
    expect(sshFiles('/tmp/hb-vm-123456').socket.length).toBeLessThan(80);
  });
});

describe('a command on its way through a login shell', () => {
  it('comes out as the same words', () => {
    const words = ['printf', '%s|', "it's", '$HOME', 'a  b', '', '*', '\\', '"', 'a\nb', '`id`', 'é'];
    const { stdout } = spawnSync('sh', ['-c', remoteCommand(words)], { encoding: 'utf8' });
    expect(stdout).toBe(
      words
        .slice(2)
        .map((word) => `${word}|`)
        .join(''),
    );
  });
});
