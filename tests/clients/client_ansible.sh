# Ansible: a playbook that submits, polls with retries, and reads the history.
# packages: ansible-core
set -e
export ANSIBLE_LOCALHOST_WARNING=False ANSIBLE_HOME=$PWD/.ansible ANSIBLE_NOCOWS=1 ANSIBLE_PYTHON_INTERPRETER=$(command -v python3)
cat > play.yml <<'S'
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - name: submit
      ansible.builtin.command: sbatch --parsable -J playbook -o out.txt --wrap "sleep 1; echo done"
      register: job
    - name: poll
      ansible.builtin.command: squeue -h -j {{ job.stdout }} -o %T
      register: state
      until: state.stdout == "" or state.rc != 0
      retries: 60
      delay: 1
      failed_when: false
    - name: history
      ansible.builtin.command: sacct -n -X -P -j {{ job.stdout }} -o State,ExitCode
      register: ended
      until: ended.stdout == "COMPLETED|0:0"
      retries: 10
      delay: 1
    - name: facts
      ansible.builtin.command: scontrol show node -o
      register: nodes
    - ansible.builtin.assert:
        that: nodes.stdout_lines | length == 2
S
ansible-playbook -i localhost, play.yml
grep -q done out.txt
